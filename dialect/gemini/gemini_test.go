package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

func TestRecordings(t *testing.T) {
	all := dialecttest.LoadAll(t, Dialect(), "gemini/*")
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

func TestConformance(t *testing.T) {
	all := dialecttest.OwnStreams(t, Dialect())
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

func TestInvalid(t *testing.T) {
	call := func(path string) string {
		return `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"` + path + `","stringValue":"x"}]}}]}}]}`
	}
	for name, frame := range map[string]string{
		"no object":              `[]`,
		"text of the wrong type": `{"candidates":[{"content":{"parts":[{"text":5}]}}]}`,
		"code of the wrong type": `{"candidates":[{"content":{"parts":[{"executableCode":{"code":5}}]}}]}`,
		"no path":                call("a"),
		"path to nothing":        call("$"),
		"path to a list":         call("$[0]"),
		"open bracket":           call("$.a[0"),
		"no index":               call("$.a[x]"),
		"empty step":             call("$..a"),
		"too deep":               call("$" + strings.Repeat(".a", maxDepth+1)),
		"too many":               `{"candidates":[` + many() + `]}`,
		"too many parts":         `{"candidates":[{"content":{"parts":[` + strings.Repeat(`{"functionCall":{"name":"f"}},`, maxParts) + `{"functionCall":{"name":"f"}}]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := Dialect().Decoder()
			ops, err := d.Decode(dialect.Frame{Data: []byte(frame)})
			var bad *dialect.Error
			if !errors.As(err, &bad) || bad.Frame != 1 || bad.Dialect != "gemini" || len(ops) > 0 {
				t.Errorf("%v, %d operations", err, len(ops))
			}
		})
	}
}

func many() string {
	all := make([]string, maxCandidates+1)
	for i := range all {
		all[i] = fmt.Sprintf(`{"index":%d}`, i)
	}
	return strings.Join(all, ",")
}

// Arguments that arrive in pieces become valid JSON with the values at the paths that the pieces name.
func TestArguments(t *testing.T) {
	s := dialect.NewStream(Dialect())
	ops, err := s.Write(dialecttest.Load(t, Dialect(), "testdata/calls.sse", "").Body)
	if err != nil {
		t.Fatal(err)
	}
	input := map[string]string{}
	names := map[string]string{}
	for _, op := range ops {
		switch {
		case op.Type == event.PartStart:
			names[op.Part] = op.Body.Name
		case op.Field == event.Input:
			input[names[op.Part]] += op.Text
		}
	}
	want := map[string]string{
		"add": `{"a":1}`, "now": `{}`, "none": `{}`, "open": `{"a":[["x"]]}`,
		"book": `{"who":{"name":"Zo😀 \"é\"\n","age":4.5},"days":[{"at":"mon"},{"at":null}],"odd key":true}`,
	}
	if diff := cmp.Diff(want, input); diff != "" {
		t.Error(diff)
	}
	for name, s := range input {
		if !json.Valid([]byte(s)) {
			t.Errorf("%s: invalid JSON: %s", name, s)
		}
	}
}

func TestCounts(t *testing.T) {
	s := dialect.NewStream(Dialect())
	if _, err := s.Write(dialecttest.Load(t, Dialect(), "testdata/kinds.sse", "").Body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dialect.Unknown{"part": 1, "result of no code": 1}, s.Unknown()); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range dialecttest.OwnStreams(f, Dialect()) {
		f.Add(s.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[chunk](f, Dialect(), "gemini/*") }
