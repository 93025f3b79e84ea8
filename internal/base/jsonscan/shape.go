package jsonscan

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// kind is what a shape decodes.
type kind uint8

// The kinds of shapes. A value of kind foreign is left to encoding/json.
const (
	foreign kind = iota
	text
	integer
	boolean
	raw
	object
	list
	pointer
)

// shape is how a Go type is decoded.
type shape struct {
	kind   kind
	elem   *shape  // of a list or pointer
	fields []field // of an object
}

// field is a field of a struct. inner is its index within the embedded struct with the index outer; if it isn't in one, inner is -1.
type field struct {
	name         string
	outer, inner int
	shape        *shape
}

// of returns the field in a struct.
func (f *field) of(v reflect.Value) reflect.Value {
	v = v.Field(f.outer)
	if f.inner >= 0 {
		v = v.Field(f.inner)
	}
	return v
}

// maxFields is the limit of fields in a struct: a bit for each of them marks it as present.
const maxFields = 64

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// newShape returns the shape of a type. parents has the types that contain it, because a type may contain itself.
func newShape(t reflect.Type, parents map[reflect.Type]*shape) *shape {
	if s := parents[t]; s != nil {
		return s
	}
	s := &shape{}
	parents[t] = s
	if t == rawType {
		s.kind = raw
		return s
	}
	if p := reflect.PointerTo(t); p.Implements(unmarshaler) || p.Implements(textUnmarshaler) {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		// encoding/json checks that a json.Number is one.
		if t != reflect.TypeFor[json.Number]() {
			s.kind = text
		}
	case reflect.Int, reflect.Int64:
		s.kind = integer
	case reflect.Bool:
		s.kind = boolean
	case reflect.Pointer:
		s.kind, s.elem = pointer, newShape(t.Elem(), parents)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			s.kind, s.elem = list, newShape(t.Elem(), parents)
		}
	case reflect.Struct:
		if fields, ok := fieldsOf(t, parents); ok {
			s.kind, s.fields = object, fields
		}
	}
	return s
}

// fieldsOf returns the fields of a struct and of the structs embedded in it. ok is false if the struct has something that only
// encoding/json knows how to decode: two fields with one name, options that change the form of a value, or several levels of embedding.
func fieldsOf(t reflect.Type, parents map[reflect.Type]*shape) (fields []field, ok bool) {
	names := map[string]bool{}
	add := func(f reflect.StructField, outer, inner int) bool {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || names[strings.ToLower(name)] || strings.Contains(options, "string") || !isASCII([]byte(name)) {
			return false
		}
		names[strings.ToLower(name)] = true
		fields = append(fields, field{name: name, outer: outer, inner: inner, shape: newShape(f.Type, parents)})
		return len(fields) <= maxFields
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch tag := f.Tag.Get("json"); {
		case f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct:
			for j := range f.Type.NumField() {
				if inner := f.Type.Field(j); inner.IsExported() && !add(inner, i, j) {
					return nil, false
				}
			}
		case !f.IsExported() || tag == "-":
		case !add(f, i, -1):
			return nil, false
		}
	}
	return fields, true
}

// find returns the index of the field with a name, or -1. It begins at the field after the last one, because a stream's frames have their
// keys in one order.
func (s *shape) find(name []byte, after int) int {
	for i := after + 1; i < len(s.fields); i++ {
		if s.fields[i].name == string(name) {
			return i
		}
	}
	for i := range after + 1 {
		if s.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// resembles reports whether encoding/json could take a name for that of a field although they differ: it ignores case.
func (s *shape) resembles(name []byte) bool {
	if !isASCII(name) {
		return true
	}
	for i := range s.fields {
		if len(s.fields[i].name) == len(name) && strings.EqualFold(s.fields[i].name, string(name)) {
			return true
		}
	}
	return false
}

// isASCII reports whether a text has no character beyond ASCII.
func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
