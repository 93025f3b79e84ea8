package dialect

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Text decodes the deltas of one text. A delta may end inside a character: in the middle of its UTF-8 bytes, or between the two escapes of
// a surrogate pair. Decoding each delta on its own would replace both halves with U+FFFD, so Text buffers an incomplete character until
// the next delta completes it. The zero value is ready to use. A Text can be marshalled to JSON and back.
//
// All deltas of one text must be decoded by the same Text, and no two texts may share one.
type Text struct {
	// Partial is an incomplete UTF-8 sequence, at most 3 bytes.
	Partial []byte `json:"held,omitempty"`
	// High is a high surrogate whose low surrogate is missing, or 0. At most one of Partial and High is set.
	High uint16 `json:"high,omitempty"`
}

// ErrNotString reports a JSON value that is neither a string nor null.
var ErrNotString = errors.New("dialect: not a JSON string")

// JSON decodes a delta given as a JSON token: a string with its quotes and escapes, or null for the empty string. Each invalid byte and
// each lone surrogate becomes U+FFFD, as in encoding/json.
func (t *Text) JSON(token []byte) (string, error) {
	if len(token) < 2 || token[0] != '"' || token[len(token)-1] != '"' {
		if string(token) == "null" {
			return "", nil
		}
		return "", ErrNotString
	}
	s := token[1 : len(token)-1]
	if t.isComplete() && bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s), nil
	}
	buf := make([]byte, 0, len(t.Partial)+len(s)+utf8.UTFMax)
	for len(s) > 0 {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return string(t.raw(buf, s)), nil
		}
		buf = t.raw(buf, s[:i])
		n, r := escape(s[i:])
		if n == 0 {
			return string(buf), ErrNotString
		}
		s = s[i+n:]
		switch {
		case t.High != 0 && r >= 0xdc00 && r < 0xe000:
			buf = utf8.AppendRune(buf, utf16.DecodeRune(rune(t.High), r))
			t.High = 0
			continue
		case r >= 0xd800 && r < 0xdc00:
			buf = t.flush(buf)
			t.High = uint16(r)
			continue
		}
		buf = utf8.AppendRune(t.flush(buf), r) // a lone low surrogate is U+FFFD by itself
	}
	return string(buf), nil
}

// Raw decodes a delta that isn't JSON.
func (t *Text) Raw(s string) string {
	if t.isComplete() && utf8.ValidString(s) {
		return s
	}
	return string(t.raw(nil, []byte(s)))
}

// Close returns U+FFFD if a character is incomplete, and "" otherwise. It resets t for another text.
func (t *Text) Close() string {
	if t.isComplete() {
		return ""
	}
	return string(t.flush(nil))
}

func (t *Text) isComplete() bool { return len(t.Partial) == 0 && t.High == 0 }

// flush appends U+FFFD for an incomplete character and drops it.
func (t *Text) flush(buf []byte) []byte {
	if t.High != 0 {
		buf = utf8.AppendRune(buf, utf8.RuneError)
	}
	for range t.Partial {
		buf = utf8.AppendRune(buf, utf8.RuneError)
	}
	t.High, t.Partial = 0, nil
	return buf
}

// raw appends the bytes s to buf, up to an incomplete character at the end, which it buffers.
func (t *Text) raw(buf, s []byte) []byte {
	if len(s) == 0 {
		return buf
	}
	if t.High != 0 {
		buf = t.flush(buf)
	}
	if len(t.Partial) > 0 {
		s = append(t.Partial, s...)
		t.Partial = nil
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 && !utf8.FullRune(s) {
			t.Partial = bytes.Clone(s)
			return buf
		}
		buf = utf8.AppendRune(buf, r)
		s = s[n:]
	}
	return buf
}

// escape decodes the JSON escape at the beginning of s. It returns the length of the escape, or 0 if it is invalid, and the character or
// UTF-16 code unit.
func escape(s []byte) (int, rune) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return 2, rune(s[1])
	case 'b':
		return 2, '\b'
	case 'f':
		return 2, '\f'
	case 'n':
		return 2, '\n'
	case 'r':
		return 2, '\r'
	case 't':
		return 2, '\t'
	case 'u':
		if len(s) >= 6 {
			if r, err := strconv.ParseUint(string(s[2:6]), 16, 16); err == nil {
				return 6, rune(r)
			}
		}
	}
	return 0, 0
}
