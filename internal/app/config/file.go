// Reading a configuration file. All problems are reported at once, each with its line and key.

package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Parse overrides the configuration with the contents of a file, whose name begins the errors. Unknown keys are errors. Errors are
// [ErrInvalid].
//
// Keys that the file doesn't contain keep their values, so c should have the defaults. A file with several documents
// is refused, because all but the first would be ignored.
func (c *Config) Parse(name string, b []byte) error {
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		line, message := explainYAML(err)
		return &keyError{source: fmt.Sprintf("%s:%d", name, line), err: errors.New(message)}
	}
	if len(f.Docs) > 1 {
		return &keyError{source: name, err: errors.New("the file contains more than one document")}
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil || f.Docs[0].Body.Type() == ast.NullType || f.Docs[0].Body.Type() == ast.CommentType {
		return nil // an empty file, or comments only
	}
	r := fileReader{config: c, name: name}
	r.read(f.Docs[0].Body, reflect.ValueOf(c).Elem(), "")
	return errors.Join(r.errs...)
}

// fileReader reads the nodes of a file into a configuration and collects the errors.
type fileReader struct {
	config *Config
	name   string
	errs   []error
}

// bad collects an error about a key on a line.
func (r *fileReader) bad(line int, key, format string, args ...any) {
	r.errs = append(r.errs, &keyError{fmt.Sprintf("%s:%d", r.name, line), key, fmt.Errorf(format, args...)})
}

// read reads a node into a value. The members of structs are read one by one, so that an error in one doesn't hide the others.
func (r *fileReader) read(n ast.Node, v reflect.Value, key string) {
	if v.Kind() != reflect.Struct {
		r.readValue(n, v, key)
		return
	}
	nodes, err := entries(n)
	if err != nil {
		r.bad(lineOf(n), key, "%w", err)
		return
	}
	fields := members(v)
	for _, e := range nodes {
		path := strings.TrimPrefix(key+"."+e.key, ".")
		i := slices.IndexFunc(fields, func(m member) bool { return m.name == e.key })
		if i < 0 {
			r.bad(e.line, path, "unknown key%s", r.suggest(v, e.key))
			continue
		}
		r.config.SetSource(path, fmt.Sprintf("%s:%d", r.name, e.line))
		r.read(e.value, fields[i].value, path)
	}
}

// readValue reads a node into a value that isn't a struct.
func (r *fileReader) readValue(n ast.Node, v reflect.Value, key string) {
	err := yaml.NodeToValue(n, v.Addr().Interface(), yaml.Strict())
	if err == nil {
		return
	}
	line, message := explainYAML(err)
	if line == 0 {
		line = lineOf(n)
	}
	// The library speaks of Go's types. Text may be a secret, so it is not shown.
	if form := formOf(v.Type()); form != "" {
		if message = "must be " + form; v.Kind() != reflect.String {
			if text, err := scalar(n); err == nil {
				message = fmt.Sprintf("%q must be %s", text, form)
			}
		}
	}
	r.bad(line, key, "%s", strings.TrimPrefix(message, key+": "))
}

// formOf returns what a value of a type looks like in a file, or "" for a type that reads nodes itself.
func formOf(t reflect.Type) string {
	if t.PkgPath() != "" {
		return ""
	}
	switch t.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a single value"
	case reflect.Slice:
		return "a list, such as [a, b]"
	}
	return ""
}

// suggest returns what the user may have meant by an unknown key of a struct: a key that is spelt like it, or the same key elsewhere.
func (r *fileReader) suggest(v reflect.Value, key string) string {
	best, least := "", max(2, len(key)/3)+1
	for _, m := range members(v) {
		if d := distance(key, m.name); d < least {
			best, least = m.name, d
		}
	}
	if best != "" {
		return "; did you mean " + best + "?"
	}
	for _, k := range r.config.Keys() {
		if strings.HasSuffix(k.Path, "."+key) || k.Path == key {
			return "; did you mean " + k.Path + "?"
		}
	}
	return "; leat.example.yaml lists all keys"
}

// distance returns the number of characters to insert, delete, replace or swap with their neighbour to make b from a.
func distance(a, b string) int {
	var before, last []int // the rows for the prefixes of a that are shorter by two and by one
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// explainYAML returns the line, if it is known, and the message of an error of the library, without the source, which may contain secrets.
func explainYAML(err error) (line int, message string) {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return 0, err.Error()
	}
	if t := e.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return line, e.GetMessage()
}

// lineOf returns the line on which a node begins.
func lineOf(n ast.Node) int {
	if members, ok := n.(*ast.MappingNode); ok && len(members.Values) > 0 {
		n = members.Values[0].Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// SetSource notes where a key got its value, such as a flag.
func (c *Config) SetSource(key, source string) {
	if c.sources == nil {
		c.sources = map[string]string{}
	}
	c.sources[key] = source
}

// sourceOf returns where a key or the section around it got its value, or "config" if that is the default.
func (c *Config) sourceOf(key string) string {
	for {
		if source := c.sources[key]; source != "" {
			return source
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 {
			return ErrInvalid.Error()
		}
		key = key[:i]
	}
}
