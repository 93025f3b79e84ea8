package elizaactions

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

func TestConformance(t *testing.T) {
	dialecttest.Run(t, Dialect(), dialecttest.OwnStreams(t, Dialect()))
}

// The statuses of the example in Eliza's document on callbacks.
const (
	looking   = "🔍 Looking up track..."
	searching = "🔍 Searching for track..."
	setting   = "✨ Setting up playback..."
	playing   = "Now playing: **Song**"
)

func TestStreams(t *testing.T) {
	tests := map[string]struct {
		text    string
		history []string
		outcome event.Outcome
		err     *event.Error
	}{
		"statuses":      {playing, []string{looking, searching, setting, playing}, event.Completed, nil},
		"prefix":        {"Sure, one moment.\n\n" + playing, []string{looking, searching, setting, playing}, event.Completed, nil},
		"append":        {"Loading..\n\nReady.", []string{"Loading.."}, event.Completed, nil},
		"equal":         {"Hello world", []string{"Hello world"}, event.Completed, nil},
		"repeat":        {"Hello world", []string{"Hello world"}, event.Completed, nil},
		"diverges":      {"Bye\n\nHello there!", []string{"Hello world", "Bye"}, event.Completed, nil},
		"later":         {"A\n\ns2\n\nBC", []string{"s1", "s2"}, event.Completed, nil},
		"held-at-error": {"Hello world\n\nHello", []string{"Hello world"}, event.Failed, &event.Error{Code: "overloaded", Message: "model overloaded", Retryable: true}},
		"error":         {"So far", nil, event.Failed, &event.Error{Message: "the agent failed"}},
		"characters":    {"smile 😀\n\n\ufffd\n\nend\ufffd", []string{"\ufffd"}, event.Completed, nil},
		"cut":           {"So far\n\nbusy\n\nbu", []string{"busy"}, "", nil},
	}
	for _, s := range dialecttest.OwnStreams(t, Dialect()) {
		t.Run(s.Name, func(t *testing.T) {
			want, ok := tests[s.Name]
			if !ok {
				t.Fatal("the test has no expected text for this stream")
			}
			st := dialect.NewStream(Dialect())
			ops, err := st.Write(s.Body)
			if err != nil {
				t.Fatal(err)
			}
			rest, err := st.Close()
			if errors.Is(err, dialect.ErrCutShort) != (want.outcome == "") {
				t.Errorf("Close: %v", err)
			}
			tr := dialecttest.Fold(t, append(ops, rest...))
			if diff := cmp.Diff(want.text, tr.Visible(dialecttest.Turn)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want.history, tr.History(dialecttest.Turn)); diff != "" {
				t.Errorf("history: %s", diff)
			}
			turn := tr.Turn(dialecttest.Turn)
			if turn.Outcome != want.outcome {
				t.Errorf("outcome %q, want %q", turn.Outcome, want.outcome)
			}
			if diff := cmp.Diff(want.err, turn.Error); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	for _, bad := range []string{`{}`, `{"type":""}`, `{"type":5}`, `{"type":"chunk","text":5}`, `{"type":"callback","text":{}}`} {
		ops, err := Dialect().Decoder().Decode(dialect.Frame{Data: []byte(bad)})
		var e *dialect.Error
		if !errors.As(err, &e) || len(ops) > 0 {
			t.Errorf("%s: %d operations, %v", bad, len(ops), err)
		}
	}
}

func TestUnknown(t *testing.T) {
	d := Dialect().Decoder()
	for range 2 {
		if ops, err := d.Decode(dialect.Frame{Data: []byte(`{"type":"telemetry","__proto__":{"type":"done"}}`)}); err != nil || len(ops) > 0 {
			t.Errorf("%v, %v", ops, err)
		}
	}
	if diff := cmp.Diff(dialect.Unknown{"telemetry": 2}, d.(dialect.Counter).Unknown()); diff != "" {
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
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[frame](f, Dialect()) }
