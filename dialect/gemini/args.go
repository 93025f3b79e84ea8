package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// args writes the arguments of a call as one JSON object while they arrive. The API sends them as values with JSON paths, such as $.city or
// $.stops[0].name, in the order of the object, and a long string in several pieces. The output is append-only: args opens the objects and
// arrays on the way to a value and closes them when a value with another path follows.
//
// args is part of the decoder's stored state.
type args struct {
	Path     []string     `json:"path,omitempty"`   // the steps to the last value; the step of an array is "[" and the index
	HasBrace bool         `json:"begun,omitempty"`  // the outermost brace is written
	String   bool         `json:"string,omitempty"` // the last value is a string that continues
	Text     dialect.Text `json:"text,omitzero"`
}

// maxDepth is the limit of the steps in a path. The path is stored with every commit, and no tool has such arguments.
const maxDepth = 64

// The causes of invalid paths.
var (
	errPath  = errors.New("a path is $ and steps such as .name, ['name'] and [0]")
	errDepth = fmt.Errorf("arguments are nested more than %d deep", maxDepth)
)

// write returns the JSON that a piece adds. A piece with the path of a continued string appends to it; every other piece begins a new value,
// and a piece without any value is null.
func (a *args) write(in *argument) (string, error) {
	path, err := steps(in.Path)
	if err != nil {
		return "", err
	}
	var b []byte
	if !a.String || !slices.Equal(path, a.Path) {
		b = a.move(b, path)
	}
	switch {
	case in.String != nil:
		if !a.String {
			b = append(b, '"')
		}
		text, err := a.Text.JSON(in.String)
		if err != nil {
			return "", err
		}
		b = appendInside(b, text)
		if a.String = in.Continue; !in.Continue {
			b = a.quote(b)
		}
	case in.Number != "":
		b = append(b, in.Number...)
	case in.Bool != nil:
		b = strconv.AppendBool(b, *in.Bool)
	case a.String:
		if a.String = in.Continue; !in.Continue {
			b = a.quote(b)
		}
	default:
		b = append(b, "null"...)
	}
	return string(b), nil
}

// quote ends the continued string.
func (a *args) quote(b []byte) []byte {
	a.String = false
	return append(appendInside(b, a.Text.Close()), '"')
}

// close returns the rest of the JSON: the end of a continued string, and the closing brackets. Arguments without any value become {}.
func (a *args) close() string {
	var b []byte
	if a.String {
		b = a.quote(b)
	}
	if !a.HasBrace {
		b = append(b, '{')
	}
	for i := len(a.Path) - 1; i > 0; i-- {
		b = append(b, closer(a.Path[i]))
	}
	return string(append(b, '}'))
}

// move appends what is between the last value and the one at path: it closes the objects and arrays that path has left, appends a comma, and
// opens those that path enters, with their keys. If a value is sent twice, its last step is written twice, because the first one can't be
// taken back.
func (a *args) move(b []byte, path []string) []byte {
	if a.String {
		b = a.quote(b)
	}
	common := 0
	for common < min(len(path), len(a.Path)) && path[common] == a.Path[common] {
		common++
	}
	common = min(common, len(path)-1)
	// Step 0 is a key of the outermost object, which stays open until close.
	if a.HasBrace {
		for i := len(a.Path) - 1; i > common; i-- {
			b = append(b, closer(a.Path[i]))
		}
		b = append(b, ',')
	}
	// The object or array of step common is open already, unless nothing was written at all.
	for i := common; i < len(path); i++ {
		if !a.HasBrace || i > common {
			b = append(b, opener(path[i]))
			a.HasBrace = true
		}
		if !array(path[i]) {
			b = append(event.AppendString(b, path[i]), ':')
		}
	}
	a.Path = path
	return b
}

// array reports whether a step is an index.
func array(step string) bool { return strings.HasPrefix(step, "[") }

// opener returns the bracket that begins the value of which step is a part: an array for an index, and an object for a name.
func opener(step string) byte {
	if array(step) {
		return '['
	}
	return '{'
}

// closer returns the bracket that matches opener.
func closer(step string) byte {
	if array(step) {
		return ']'
	}
	return '}'
}

// appendInside appends s as it is written between the quotes of a JSON string.
func appendInside(b []byte, s string) []byte {
	if s == "" {
		return b
	}
	q := event.AppendString(nil, s)
	return append(b, q[1:len(q)-1]...)
}

// steps splits a JSON path into its steps: names after a dot or in brackets and quotes, and indexes of arrays, which keep their bracket. The
// first step must be a name, because the arguments are an object. A quoted name that begins with a bracket is refused, because it couldn't be
// told from an index.
func steps(path string) ([]string, error) {
	tail, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, fmt.Errorf("%w: %q", errPath, head(path))
	}
	var names []string
	for tail != "" {
		var step string
		switch {
		case strings.HasPrefix(tail, "['"), strings.HasPrefix(tail, `["`):
			step, tail, ok = strings.Cut(tail[2:], tail[1:2]+"]")
			ok = ok && !array(step)
		case tail[0] == '[':
			step, tail, ok = strings.Cut(tail, "]")
			_, err := strconv.ParseUint(step[1:], 10, 31)
			ok = ok && err == nil
		case tail[0] == '.':
			n := strings.IndexAny(tail[1:], ".[")
			if n < 0 {
				n = len(tail) - 1
			}
			step, tail = tail[1:1+n], tail[1+n:]
			ok = step != ""
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("%w: %q", errPath, head(path))
		}
		if names = append(names, step); len(names) > maxDepth {
			return nil, errDepth
		}
	}
	if len(names) == 0 || array(names[0]) {
		return nil, fmt.Errorf("%w: %q", errPath, head(path))
	}
	return names, nil
}

// head returns the first 64 bytes of a path for an error, without an incomplete character at the end.
func head(s string) string {
	s = s[:min(len(s), 64)]
	for !utf8.ValidString(s) && s != "" {
		s = s[:len(s)-1]
	}
	return s
}

// object returns complete arguments as compact JSON. Absent arguments are {}.
func object(raw json.RawMessage) string {
	if s := decoding.Compact(raw); s != "" && s != "null" {
		return s
	}
	return "{}"
}
