package event

import (
	"strings"
	"unicode/utf8"
)

// scan reads the common form of an event, as AppendJSON writes it: fixed order of keys, no body, no escapes except
// \n, \" and \\. For any other form it returns false and leaves e unspecified; the caller then uses encoding/json.
// Nine of ten events of a log have this form, and compaction reads all of them.
func (e *Event) scan(b []byte) bool {
	s := scanner{b: b}
	var w Event
	if !s.lit("{") {
		return false
	}
	if s.lit(`"seq":`) && !(s.int(&w.Seq) && s.lit(",")) {
		return false
	}
	if s.lit(`"first":`) && !(s.int(&w.MergedFrom) && s.lit(",")) {
		return false
	}
	if s.lit(`"at":`) && !(s.int(&w.At) && s.lit(",")) {
		return false
	}
	if s.lit(`"turn":`) && !(s.str(&w.Turn) && s.lit(",")) {
		return false
	}
	if !s.lit(`"type":"part.append"`) {
		return false
	}
	w.Type = PartAppend
	if s.lit(`,"message":`) && !s.str(&w.Message) {
		return false
	}
	if s.lit(`,"part":`) && !s.str(&w.Part) {
		return false
	}
	if s.lit(`,"offset":`) && !s.int(&w.Offset) { // a producer leaves it out
		return false
	}
	if !(s.lit(`,"text":`) && s.str(&w.Text) && s.lit("}")) || len(s.b) != 0 {
		return false
	}
	*e = w
	return true
}

// scanner consumes JSON from the beginning of b. After a method returned false, the position is undefined.
type scanner struct{ b []byte }

// lit consumes exactly l.
func (s *scanner) lit(l string) bool {
	if len(s.b) < len(l) || string(s.b[:len(l)]) != l {
		return false
	}
	s.b = s.b[len(l):]
	return true
}

// int consumes a number without a sign, of at most 18 digits so that it can't overflow. A leading zero is refused, as JSON requires.
func (s *scanner) int(v *int64) bool {
	var n int64
	i := 0
	for ; i < len(s.b) && i < 18 && s.b[i] >= '0' && s.b[i] <= '9'; i++ {
		n = n*10 + int64(s.b[i]-'0')
	}
	if i == 0 || (i > 1 && s.b[0] == '0') {
		return false
	}
	*v, s.b = n, s.b[i:]
	return true
}

// str consumes a string whose only escapes are \n, \" and \\, the most frequent ones. It refuses invalid UTF-8, so that
// encoding/json replaces it in the same way for every event.
func (s *scanner) str(v *string) bool {
	if len(s.b) == 0 || s.b[0] != '"' {
		return false
	}
	escaped := false
	for i := 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			raw := s.b[1:i]
			s.b = s.b[i+1:]
			if !utf8.Valid(raw) {
				return false
			}
			*v = string(raw)
			if escaped {
				*v = unescape.Replace(*v)
			}
			return true
		case c == '\\':
			if i++; i >= len(s.b) || (s.b[i] != 'n' && s.b[i] != '"' && s.b[i] != '\\') {
				return false
			}
			escaped = true
		case c < 0x20:
			return false
		}
	}
	return false
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
