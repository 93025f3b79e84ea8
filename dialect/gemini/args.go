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
	"github.com/leat-dev/leat/event"
)

// args writes values that come with their paths as one JSON object. It is its own state.
type args struct {
	Path     []string     `json:"path,omitempty"`   // steps to the value at hand; an array's begin with [
	HasBrace bool         `json:"begun,omitempty"`  // the outermost brace is written
	String   bool         `json:"string,omitempty"` // the value at hand is a string that continues
	Text     dialect.Text `json:"text,omitzero"`
}

// maxDepth bounds how deep arguments are nested.
const maxDepth = 64

var (
	errPath  = errors.New("a path is $ and steps such as .name, ['name'] and [0]")
	errDepth = fmt.Errorf("arguments are nested more than %d deep", maxDepth)
)

// write returns what a piece adds to the JSON.
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

// quote ends the string at hand.
func (a *args) quote(b []byte) []byte {
	a.String = false
	return append(appendInside(b, a.Text.Close()), '"')
}

// close returns what ends the object.
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

// move ends the value at hand and begins another, up to where it is to be written.
func (a *args) move(b []byte, path []string) []byte {
	if a.String {
		b = a.quote(b)
	}
	common := 0
	for common < min(len(path), len(a.Path)) && path[common] == a.Path[common] {
		common++
	}
	common = min(common, len(path)-1) // a value that comes again is written again
	if a.HasBrace {
		for i := len(a.Path) - 1; i > common; i-- {
			b = append(b, closer(a.Path[i]))
		}
		b = append(b, ',')
	}
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

func array(step string) bool { return strings.HasPrefix(step, "[") }

func opener(step string) byte {
	if array(step) {
		return '['
	}
	return '{'
}

func closer(step string) byte {
	if array(step) {
		return ']'
	}
	return '}'
}

// appendInside appends what stands between the quotes of a JSON string.
func appendInside(b []byte, s string) []byte {
	if s == "" {
		return b
	}
	q := event.AppendString(nil, s)
	return append(b, q[1:len(q)-1]...)
}

// steps takes a path apart. The first step is always a name: arguments are an object.
func steps(path string) ([]string, error) {
	tail, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, fmt.Errorf("%w: %q", errPath, head(path))
	}
	var all []string
	for tail != "" {
		var step string
		switch {
		case strings.HasPrefix(tail, "['"), strings.HasPrefix(tail, `["`):
			step, tail, ok = strings.Cut(tail[2:], tail[1:2]+"]")
			if strings.HasPrefix(step, "[") {
				ok = false // a name that would be taken for an index
			}
		case tail[0] == '[':
			step, tail, ok = strings.Cut(tail, "]")
			if _, err := strconv.ParseUint(step[1:], 10, 31); err != nil {
				ok = false
			}
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
		if all = append(all, step); len(all) > maxDepth {
			return nil, errDepth
		}
	}
	if len(all) == 0 || array(all[0]) {
		return nil, fmt.Errorf("%w: %q", errPath, head(path))
	}
	return all, nil
}

// head is the beginning of a path, for an error.
func head(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	for !utf8.ValidString(s) && s != "" {
		s = s[:len(s)-1]
	}
	return s
}

// object returns arguments that are whole as JSON on one line.
func object(raw json.RawMessage) string {
	if s := compact(raw); s != "" && s != "null" {
		return s
	}
	return "{}"
}
