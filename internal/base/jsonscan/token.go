package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// TokenLen returns the length of the string token, with its quotes, that b begins with, and whether it has escapes. The length is 0 if b
// doesn't begin with a valid token. Invalid UTF-8 is valid here, as it is in encoding/json.
func TokenLen(b []byte) (n int, escaped bool) {
	if len(b) == 0 || b[0] != '"' {
		return 0, false
	}
	for i := 1; ; {
		if i += plain(b[i:]); i >= len(b) {
			return 0, false
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return 0, false
			}
			i += n
			escaped = true
		default: // a control character
			return 0, false
		}
	}
}

// plain returns how many bytes at the beginning of b are neither quotes, backslashes nor control characters. It tests eight bytes at a
// time: in each lane of a word, a subtraction that borrows although the lane's high bit was clear marks a hit.
func plain(b []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^low*'"', w^low*'\\'
		if hit := ((w-low*0x20)&^w | (quote-low)&^quote | (slash-low)&^slash) & high; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
		i++
	}
	return i
}

// escapeLen returns the length of the escape sequence that b begins with, or 0 if it is invalid.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := Hex4(b); ok {
			return 6
		}
	}
	return 0
}

// Hex4 reads the escape \uXXXX that b begins with.
func Hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, ch := range b[2:6] {
		switch {
		case ch >= '0' && ch <= '9':
			ch -= '0'
		case ch >= 'a' && ch <= 'f':
			ch -= 'a' - 10
		case ch >= 'A' && ch <= 'F':
			ch -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(ch)
	}
	return r, true
}

// Unquote decodes the content of a string token, without its quotes. Invalid bytes and lone surrogates become U+FFFD, as in encoding/json.
// The syntax of raw must have been checked; escaped says whether it has escapes.
func Unquote(raw []byte, escaped bool) string {
	if !escaped && utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); {
		if n := plain(raw[i:]); n > 0 && utf8.Valid(raw[i:i+n]) {
			b.Write(raw[i : i+n])
			i += n
			continue
		}
		if raw[i] != '\\' {
			r, n := utf8.DecodeRune(raw[i:])
			b.WriteRune(r)
			i += n
			continue
		}
		r, ok := Hex4(raw[i:])
		if !ok {
			b.WriteByte(unescaped[raw[i+1]])
			i += 2
			continue
		}
		i += 6
		if utf16.IsSurrogate(r) {
			low, _ := Hex4(raw[i:])
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unescaped has the characters that the escapes of one letter stand for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// scanner parses JSON of one expected form from its beginning. After a method returned false, the position is undefined, and the whole text must
// be passed to encoding/json.
type scanner struct{ b []byte }

// New returns a scanner of b.
func New(b []byte) scanner { return scanner{b} }

// Lit consumes the literal l, such as {"type": with its punctuation.
func (s *scanner) Lit(l string) bool {
	if len(s.b) < len(l) || string(s.b[:len(l)]) != l {
		return false
	}
	s.b = s.b[len(l):]
	return true
}

// Int consumes a number from 0 to 999999999.
func (s *scanner) Int() (n int, ok bool) {
	i := 0
	for ; i < len(s.b) && i < 9 && s.b[i] >= '0' && s.b[i] <= '9'; i++ {
		n = n*10 + int(s.b[i]-'0')
	}
	if i == 0 || (i > 1 && s.b[0] == '0') {
		return 0, false
	}
	s.b = s.b[i:]
	return n, true
}

// String consumes a string and returns it undecoded, with its quotes.
func (s *scanner) String() (token []byte, ok bool) {
	n, _ := TokenLen(s.b)
	if n == 0 {
		return nil, false
	}
	token, s.b = s.b[:n], s.b[n:]
	return token, true
}

// Space skips white space.
func (s *scanner) Space() {
	for len(s.b) > 0 && (s.b[0] == ' ' || s.b[0] == '\n' || s.b[0] == '\r' || s.b[0] == '\t') {
		s.b = s.b[1:]
	}
}

// End skips white space and reports whether nothing follows.
func (s *scanner) End() bool {
	s.Space()
	return len(s.b) == 0
}
