package jsonscan

import (
	"encoding/json"
	"reflect"
	"unicode/utf8"
)

// Reader decodes frames into values of type T, a struct with json tags or a list. [NewReader] makes one. It is immutable, so one for each
// type, in a variable of the package, is enough.
type Reader[T any] struct{ shape *shape }

// NewReader returns a Reader of T.
func NewReader[T any]() Reader[T] {
	return Reader[T]{newShape(reflect.TypeFor[T](), map[reflect.Type]*shape{})}
}

// maxReused is the limit, in bytes, of frames whose memory is reused. A stream may last for hours after one huge frame.
const maxReused = 64 << 10

// Read decodes a frame as json.Unmarshal decodes it into a zero T, with the same errors. last is the memory of the frame before, or zero: a
// frame like that one needs no allocation. The result is usually last. It is valid until the next call with the same last, and only as
// long as b isn't changed, because a [json.RawMessage] in it may be a part of b. Strings remain valid; anything else that is
// stored for longer must be copied.
func (r Reader[T]) Read(last *T, b []byte) (*T, error) {
	if v, ok := r.Try(last, b); ok {
		return v, nil
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, err
	}
	return v, nil
}

// Try decodes a frame that has the common form; see [Reader.Read]. It returns false for any other frame, whether it is valid or not.
func (r Reader[T]) Try(last *T, b []byte) (*T, bool) {
	v := last
	if len(b) > maxReused {
		v = new(T)
	}
	p := parser{b: b, limit: maxDepth}
	if p.value(r.shape, reflect.ValueOf(v).Elem(), 0) {
		if p.space(); p.i == len(b) {
			return v, true
		}
	}
	return nil, false
}

// maxDepth is the deepest nesting that a Reader decodes itself. That of encoding/json is larger.
const maxDepth = 200

// parser reads a JSON text once. Each method consumes a value and stores it in v, which it overwrites completely. After a method returned
// false, position and v are undefined.
type parser struct {
	b     []byte
	i     int
	limit int // of the nesting
}

// value consumes a value of a shape, with white space before it.
func (p *parser) value(s *shape, v reflect.Value, depth int) bool {
	p.space()
	switch s.kind {
	case raw:
		start := p.i
		if !p.skip(depth) {
			return false
		}
		v.SetBytes(p.b[start:p.i:p.i])
		return true
	case foreign:
		return false
	}
	if p.at() == 'n' {
		v.SetZero()
		return p.literal("null")
	}
	switch s.kind {
	case text:
		return p.text(v)
	case integer:
		return p.integer(v)
	case boolean:
		isTrue := p.at() == 't'
		v.SetBool(isTrue)
		return isTrue && p.literal("true") || p.literal("false")
	case pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return p.value(s.elem, v.Elem(), depth)
	case list:
		return p.list(s.elem, v, depth+1)
	}
	return p.object(s, v, depth+1)
}

// text consumes a string. If it equals the string of the frame before, that one stays.
func (p *parser) text(v reflect.Value) bool {
	n, escaped := TokenLen(p.b[p.i:])
	if n == 0 {
		return false
	}
	content := p.b[p.i+1 : p.i+n-1]
	p.i += n
	switch {
	case escaped || !utf8.Valid(content):
		v.SetString(Unquote(content, escaped))
	case v.String() != string(content):
		v.SetString(string(content))
	}
	return true
}

// integer consumes a number of at most 18 digits without a fraction or an exponent.
func (p *parser) integer(v reflect.Value) bool {
	sign := int64(1)
	if p.at() == '-' {
		sign = -1
		p.i++
	}
	start, n := p.i, int64(0)
	for ; p.at() >= '0' && p.at() <= '9'; p.i++ {
		n = n*10 + int64(p.at()-'0')
		if p.i-start == 18 {
			return false
		}
	}
	if c := p.at(); p.i == start || p.b[start] == '0' && p.i > start+1 || c == '.' || c == 'e' || c == 'E' || v.OverflowInt(n) {
		return false
	}
	v.SetInt(sign * n)
	return true
}

// list consumes an array. The elements of the frame before are overwritten.
func (p *parser) list(elem *shape, v reflect.Value, depth int) bool {
	if p.at() != '[' || depth > p.limit {
		return false
	}
	p.i++
	if v.IsNil() {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	n := 0
	for ; p.next(']', n == 0); n++ {
		if n == v.Cap() {
			v.SetLen(n)
			v.Grow(1)
		}
		v.SetLen(n + 1)
		if !p.value(elem, v.Index(n), depth) {
			return false
		}
	}
	v.SetLen(n)
	return p.closed(']')
}

// object consumes an object. Fields that it doesn't have become zero.
func (p *parser) object(s *shape, v reflect.Value, depth int) bool {
	if p.at() != '{' || depth > p.limit {
		return false
	}
	p.i++
	var present uint64
	last := -1
	for isFirst := true; p.next('}', isFirst); isFirst = false {
		name, ok := p.name()
		if !ok {
			return false
		}
		i := s.find(name, last)
		if i < 0 {
			if s.resembles(name) || !p.skip(depth) {
				return false
			}
			continue
		}
		if present&(1<<i) != 0 || !p.value(s.fields[i].shape, s.fields[i].of(v), depth) {
			return false
		}
		present |= 1 << i
		last = i
	}
	for i := range s.fields {
		if present&(1<<i) == 0 {
			s.fields[i].of(v).SetZero()
		}
	}
	return p.closed('}')
}

// name consumes the name of an object's member and the colon after it. Names with escapes are refused.
func (p *parser) name() (name []byte, ok bool) {
	n, escaped := TokenLen(p.b[p.i:])
	if n == 0 || escaped {
		return nil, false
	}
	name = p.b[p.i+1 : p.i+n-1]
	p.i += n
	if p.space(); p.at() != ':' {
		return nil, false
	}
	p.i++
	return name, true
}
