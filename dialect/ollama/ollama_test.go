package ollama

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
)

func TestRecordings(t *testing.T) {
	all := dialecttest.LoadAll(t, Dialect(), "ollama/*")
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

func TestConformance(t *testing.T) {
	all := dialecttest.OwnStreams(t, Dialect())
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

func TestInvalid(t *testing.T) {
	for name, frame := range map[string]string{
		"no object":              `[]`,
		"text of the wrong type": `{"message":{"content":5}}`,
		"thought":                `{"response":"","thinking":{}}`,
		"too many calls":         `{"message":{"tool_calls":[` + strings.Repeat(`{},`, maxTools) + `{}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := Dialect().Decoder()
			ops, err := d.Decode(dialect.Frame{Data: []byte(frame)})
			var bad *dialect.Error
			if !errors.As(err, &bad) || bad.Frame != 1 || bad.Dialect != "ollama" || len(ops) > 0 {
				t.Errorf("%v, %d operations", err, len(ops))
			}
		})
	}
}

func TestCounts(t *testing.T) {
	s := dialect.NewStream(Dialect())
	if _, err := s.Write(dialecttest.Load(t, Dialect(), "testdata/chat.ndjson", "").Body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dialect.Unknown{"": 1}, s.Unknown()); diff != "" {
		t.Error(diff)
	}
}

// However often a server alternates between reasoning and text, the number of parts is limited and no text is lost.
func TestThoughtsAreBounded(t *testing.T) {
	d := Dialect().Decoder()
	parts, said := map[string]bool{}, 0
	for range 2 * maxThoughts {
		ops, err := d.Decode(dialect.Frame{Data: []byte(`{"message":{"thinking":"r","content":"c"}}`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			parts[op.Part] = true
			said += len(op.Text)
		}
	}
	if len(parts) > maxThoughts+2 || said != 4*maxThoughts {
		t.Errorf("%d parts, %d bytes", len(parts), said)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range dialecttest.OwnStreams(f, Dialect()) {
		f.Add(s.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[line](f, Dialect(), "ollama/*") }
