// A reader of JSON without copies. Each frame repeats the whole text, so decoding it with encoding/json would take most of the
// time.

package openclaw

import (
	"strconv"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// cursor reads a JSON text once, from front to back. Each method consumes one value; a value of another type than the method's
// counts as absent. The first syntax error ends the reading and is stored in bad.
//
// Frames repeat the whole text of a segment, so parsing dominates the cost of decoding. encoding/json scans nested raw values
// once per level and takes four to six times as long.
type cursor struct {
	b []byte
	i int
	// isFirst means that the next member is the first of its object or array, so no comma precedes it.
	isFirst bool
	// bad means that the syntax is wrong. Every method then returns the result for a missing value, so callers check
	// it only once, at the end.
	bad bool
}

// maxDepth is the deepest nesting, as in encoding/json.
const maxDepth = 10000

// enter consumes the opening bracket of an object or array. Any other value is skipped, and the result is false.
// After true, the caller must read all members with next or hasNext, up to the end of the value.
func (c *cursor) enter(open byte) bool {
	if c.peek() != open {
		c.skip()
		return false
	}
	c.i++
	c.isFirst = true
	return true
}

// next advances to the next member of an object and sets key, or consumes the end and returns false. The caller must
// then consume the value with another method. key may be a slice of the input.
func (c *cursor) next(key *[]byte) bool {
	if !c.hasNext('}') {
		return false
	}
	if c.peek() != '"' {
		return c.fail()
	}
	raw, escaped := c.token()
	if escaped {
		raw = unquote(raw, true)
	}
	*key = raw // not valid UTF-8 perhaps, and then no key that anyone asks for
	if c.peek() != ':' {
		return c.fail()
	}
	c.i++
	return true
}

// hasNext advances to the next element of an array, or consumes the end and returns false.
func (c *cursor) hasNext(end byte) bool {
	isFirst := c.isFirst
	c.isFirst = false
	switch ch := c.peek(); {
	case c.bad:
		return false
	case ch == end:
		c.i++
		return false
	case isFirst:
		return true
	case ch == ',':
		c.i++
		return true
	}
	return c.fail()
}

// atEnd reports whether only white space follows.
func (c *cursor) atEnd() bool {
	c.space()
	return !c.bad && c.i == len(c.b)
}

// str returns a string, or "" for any other value. Unlike the result of bytes, it may be kept after the frame.
func (c *cursor) str() string { return string(c.bytes()) }

// bytes returns the content of a string, or nil for any other value. If possible, it is a slice of the input. Invalid
// UTF-8 and single surrogates become replacement characters.
func (c *cursor) bytes() []byte {
	raw, escaped := c.token()
	if raw == nil {
		return nil
	}
	return unquote(raw, escaped)
}

// snapshot returns a text that a later snapshot will extend, or "" for any other value. A gateway may cut a text in
// the middle of an emoji. With a replacement character in its place, the next snapshot wouldn't begin like this one.
func (c *cursor) snapshot() string { return jsonscan.Unquote(c.prefix()) }

// prefix returns the undecoded content of a string that may end inside a character. A high surrogate at its end is left out, because its
// other half follows later. It returns nil for any other value.
func (c *cursor) prefix() (raw []byte, escaped bool) {
	raw, escaped = c.token()
	if escaped {
		raw = cutSurrogate(raw)
	}
	return raw, escaped
}

// int returns an integer, or 0 for any other value.
func (c *cursor) int() int64 {
	n, err := strconv.ParseInt(string(c.raw()), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// bool reports whether the value is true.
func (c *cursor) bool() bool { return string(c.raw()) == "true" }

// raw returns a value as undecoded JSON, or nil for null. It points into the input.
func (c *cursor) raw() []byte {
	c.space()
	start := c.i
	c.skip()
	if v := c.b[start:c.i]; !c.bad && string(v) != "null" {
		return v
	}
	return nil
}

// skip consumes any value.
func (c *cursor) skip() {
	n := 0
	if !c.bad {
		n = jsonscan.ValueLen(c.b[c.i:], maxDepth)
	}
	if c.i += n; n == 0 {
		c.fail()
	}
}

// token consumes a string and returns the bytes between its quotes. Any other value is skipped, and the result is nil.
func (c *cursor) token() (raw []byte, escaped bool) {
	if c.peek() != '"' {
		c.skip()
		return nil, false
	}
	n, escaped := jsonscan.TokenLen(c.b[c.i:])
	if n == 0 {
		c.fail()
		return nil, false
	}
	raw = c.b[c.i+1 : c.i+n-1 : c.i+n-1]
	c.i += n
	return raw, escaped
}

// unquote decodes the content of a string whose syntax has been checked. If possible, the result is raw itself.
func unquote(raw []byte, escaped bool) []byte {
	if !escaped && utf8.Valid(raw) {
		return raw
	}
	return []byte(jsonscan.Unquote(raw, escaped))
}

// cutSurrogate removes a high surrogate without its other half from the end of a string's raw content.
func cutSurrogate(raw []byte) []byte {
	at := len(raw) - 6
	if at < 0 || raw[at] != '\\' || raw[at+1] != 'u' {
		return raw
	}
	if v, ok := jsonscan.Hex4(raw[at:]); !ok || v < 0xd800 || v > 0xdbff {
		return raw
	}
	backslashes := 0
	for i := at - 1; i >= 0 && raw[i] == '\\'; i-- {
		backslashes++
	}
	if backslashes%2 == 1 { // the backslash at hand is itself escaped
		return raw
	}
	return raw[:at]
}

// space consumes white space.
func (c *cursor) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// peek returns the first byte of the next token, or 0 at the end.
func (c *cursor) peek() byte {
	if c.bad {
		return 0
	}
	c.space()
	return c.at()
}

// at returns the byte at the position, or 0 at the end.
func (c *cursor) at() byte {
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

// fail records a syntax error and ends the reading. It returns false, so that a method can return its result.
func (c *cursor) fail() bool {
	c.bad = true
	c.i = len(c.b)
	return false
}
