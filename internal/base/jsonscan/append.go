package jsonscan

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Writer writes values of type T as JSON, byte for byte as json.Marshal does. It is faster for structs of strings, integers, flags, lists
// and structs, and leaves values of other types to json.Marshal. A type with a MarshalJSON method may also implement [Appender],
// which must then write the same. [NewWriter] makes a Writer. It is immutable, so one for each type is enough.
type Writer[T any] struct{ write *writer }

// NewWriter returns a Writer of T.
func NewWriter[T any]() Writer[T] {
	return Writer[T]{newWriter(reflect.TypeFor[T](), map[reflect.Type]*writer{})}
}

// Append appends the JSON of v.
func (w Writer[T]) Append(b []byte, v *T) ([]byte, error) {
	return (*w.write)(b, reflect.ValueOf(v).Elem())
}

// Appender is implemented by pointers to types that write their own JSON.
type Appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// writer appends the JSON of a value, which is addressable.
type writer func(b []byte, v reflect.Value) ([]byte, error)

var (
	appender      = reflect.TypeFor[Appender]()
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// newWriter returns the writer of a type, which is set when all types that it contains have one. parents has the types that contain it,
// because a type may contain itself.
func newWriter(t reflect.Type, parents map[reflect.Type]*writer) *writer {
	if w := parents[t]; w != nil {
		return w
	}
	w := new(writer)
	parents[t] = w
	*w = marshal
	switch p := reflect.PointerTo(t); {
	case p.Implements(appender):
		*w = appendOwn
		return w
	case p.Implements(marshaler), p.Implements(textMarshaler), t == reflect.TypeFor[json.Number]():
		return w
	}
	switch t.Kind() {
	case reflect.String:
		*w = appendString
	case reflect.Int, reflect.Int64:
		*w = func(b []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(b, v.Int(), 10), nil }
	case reflect.Uint64:
		*w = func(b []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(b, v.Uint(), 10), nil }
	case reflect.Bool:
		*w = func(b []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(b, v.Bool()), nil }
	case reflect.Pointer:
		elem := newWriter(t.Elem(), parents)
		*w = func(b []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return append(b, "null"...), nil
			}
			return (*elem)(b, v.Elem())
		}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			elem := newWriter(t.Elem(), parents)
			*w = func(b []byte, v reflect.Value) ([]byte, error) { return appendList(b, v, *elem) }
		}
	case reflect.Struct:
		if members, ok := membersOf(t, parents); ok {
			*w = members.append
		}
	}
	return w
}

// appendOwn appends a value that has its own JSON form.
func appendOwn(b []byte, v reflect.Value) ([]byte, error) {
	return v.Addr().Interface().(Appender).AppendJSON(b)
}

// marshal leaves a value to encoding/json.
func marshal(b []byte, v reflect.Value) ([]byte, error) {
	encoded, err := json.Marshal(v.Addr().Interface())
	return append(b, encoded...), err
}

// appendString appends a string. encoding/json escapes control characters, invalid UTF-8 and what HTML could misread.
func appendString(b []byte, v reflect.Value) ([]byte, error) {
	s := v.String()
	for i := range len(s) {
		if !isPlain[s[i]] {
			return marshal(b, v)
		}
	}
	return append(append(append(b, '"'), s...), '"'), nil
}

// isPlain has the characters that encoding/json writes as they are.
var isPlain = func() (plain [256]bool) {
	for c := byte(0x20); c < 0x7f; c++ {
		plain[c] = !strings.ContainsRune(`"\<>&`, rune(c))
	}
	return plain
}()

// appendList appends a list, or null if it is nil.
func appendList(b []byte, v reflect.Value, write writer) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = write(b, v.Index(i)); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

// member is a field of a struct as it is written.
type member struct {
	field
	key   string                   // with its quotes and the colon
	omit  func(reflect.Value) bool // nil if the member is always written
	write *writer
}

// members are the fields of a struct that are written, in order.
type members []member

// membersOf returns the members of a struct. ok is false if only encoding/json knows how to write it.
func membersOf(t reflect.Type, parents map[reflect.Type]*writer) (m members, ok bool) {
	fields, ok := fieldsOf(t, map[reflect.Type]*shape{})
	for _, f := range fields {
		sf := t.Field(f.outer)
		if f.inner >= 0 {
			sf = sf.Type.Field(f.inner)
		}
		_, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		_, hasIsZero := reflect.PointerTo(sf.Type).MethodByName("IsZero")
		var omit func(reflect.Value) bool
		switch options {
		case "":
		case "omitempty":
			omit = emptiness(sf.Type.Kind())
		case "omitzero":
			omit = reflect.Value.IsZero
			ok = ok && !hasIsZero
		default:
			ok = false
		}
		if b, _ := json.Marshal(f.name); string(b) != `"`+f.name+`"` {
			ok = false
		}
		m = append(m, member{f, `"` + f.name + `":`, omit, newWriter(sf.Type, parents)})
	}
	return m, ok
}

// emptiness returns the function that reports whether a field of a kind is omitted by the option omitempty.
func emptiness(k reflect.Kind) func(reflect.Value) bool {
	switch k {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Array:
		return func(v reflect.Value) bool { return v.Len() == 0 }
	case reflect.Int, reflect.Int64:
		return func(v reflect.Value) bool { return v.Int() == 0 }
	case reflect.Bool:
		return func(v reflect.Value) bool { return !v.Bool() }
	case reflect.Struct:
		return nil
	}
	return reflect.Value.IsZero
}

// append appends the struct of v as an object.
func (m members) append(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '{')
	start := len(b)
	for i := range m {
		f := m[i].of(v)
		if m[i].omit != nil && m[i].omit(f) {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, m[i].key...)
		var err error
		if b, err = (*m[i].write)(b, f); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}
