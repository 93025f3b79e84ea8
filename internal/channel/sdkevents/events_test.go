package sdkevents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/agentsdk"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/sdkevents"
	"github.com/leat-dev/leat/transcript"
	"pgregory.net/rapid"
)

type failer interface {
	Helper()
	Fatal(args ...any)
}

// write returns the frames of steps.
func write(t failer, steps ...channel.StreamEvent) []string {
	t.Helper()
	events := make(chan channel.StreamEvent, len(steps))
	for _, e := range steps {
		events <- e
	}
	close(events)
	var frames []string
	for f, err := range sdkevents.Events(turn, events) {
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, string(f))
	}
	return frames
}

// tool is what a reader knows of a tool call.
type tool struct {
	Name, Input, Output, Stderr, Error string
	State                              event.PartState
}

// toolOf returns what agentsdk can express of a call. It has no refusals.
func toolOf(p *transcript.Part) tool {
	t := tool{p.Name, p.Text(event.Input), p.Text(event.Output), p.Text(event.Stderr), "", p.State}
	if p.Error != nil {
		t.Error = p.Error.Message
	}
	if p.State == event.PartDenied {
		t.State, t.Error = event.PartFailed, "a person refused the call"
	}
	return t
}

// decode folds what the dialect reads in frames.
func decode(frames []string) (*transcript.Transcript, error) {
	f := dialecttest.NewFolder()
	st := dialect.NewStream(agentsdk.Dialect())
	for _, data := range frames {
		ops, err := st.Write([]byte("data: " + data + "\n\n"))
		if err := errors.Join(err, f.Fold(ops)); err != nil {
			return nil, fmt.Errorf("%s: %w", data, err)
		}
	}
	if _, err := st.Close(); err != nil {
		return nil, err
	}
	return &f.Transcript, nil
}

// buffer returns the text of a reader that has only the text of the current iteration.
func buffer(t failer, frames []string) string {
	t.Helper()
	text := ""
	for _, data := range frames {
		var f struct {
			Type  string
			Delta struct{ Type, Text string }
		}
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Type == "iteration_start":
			text = ""
		case f.Delta.Type == "text_delta":
			text += f.Delta.Text
		}
	}
	return text
}

// Whatever the story and its division into steps, readers of agentsdk end with its text, its tools and its outcome.
func TestReaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events, merged := drawStory(t)
		want := channel.NewStream(turn)
		if err := want.Apply(channel.StreamEvent{Events: events}); err != nil {
			t.Fatal(err)
		}
		var steps []channel.StreamEvent
		for _, e := range merged {
			steps = append(steps, channel.StreamEvent{Events: e})
		}
		frames := write(t, steps...)
		got, err := decode(frames)
		if err != nil {
			t.Fatal(err)
		}
		trace := strings.Join(frames, "\n")
		if diff := cmp.Diff(want.Text(), dialecttest.Visible(got)); diff != "" {
			t.Fatalf("the text differs (-want +got):\n%s\n%s", diff, trace)
		}
		var wantTools, gotTools []tool
		for _, p := range want.Tools() {
			wantTools = append(wantTools, toolOf(p))
		}
		for _, m := range got.Messages {
			for _, p := range m.Parts {
				if p.Kind == event.KindTool {
					gotTools = append(gotTools, toolOf(p))
				}
			}
		}
		if diff := cmp.Diff(wantTools, gotTools); diff != "" {
			t.Fatalf("the tools differ (-want +got):\n%s\n%s", diff, trace)
		}
		if a, b := want.Turn(), got.Turns[0]; a.Outcome != b.Outcome || !cmp.Equal(a.Error, b.Error) {
			t.Fatalf("the turn ended %s %v, readers have %s %v", a.Outcome, a.Error, b.Outcome, b.Error)
		}
		if a, b := want.Iteration(), buffer(t, frames); !strings.HasSuffix(b, a) {
			t.Fatalf("the text after the last call is %q, readers have %q\n%s", a, b, trace)
		}
	})
}
