package letta

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

func (f *v1) says(status string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
}

func (f *v1) pinged() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pings
}

// Pings are no progress: a server that was restarted sends them for a run that is dead.
func TestV1PingsAreNoProgress(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{plainRun(spoken...)}
	f.faults = []fault{{how: "reset", frames: 3}, {how: "pings", frames: 1}}
	a := f.agent(nil)
	s := newStage(t).run(a, "hello")
	s.untilText("two ")
	eventually(t, "it is pinged", func() bool { return f.pinged() > 0 })
	progress := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.events) + s.alive
	}
	before, pings := progress(), f.pinged()
	eventually(t, "more pings", func() bool { return f.pinged() > pings+20 })
	if now := progress(); now != before {
		t.Errorf("%d pings made %d steps of progress", f.pinged()-pings, now-before)
	}
	f.says("running")
	var shown *agent.Error
	if err := a.Probe(t.Context(), s.input("hello")); !errors.As(err, &shown) || shown.Code != codeSilence || !strings.Contains(shown.Message, "running") {
		t.Errorf("of a run that still counts as running: %v", err)
	}
	// The gateway ends the turn then, and the run is cancelled, which frees the conversation there.
	s.stop()
	s.want(event.Cancelled, "", "One two ")
	<-s.done
	if got := f.lines(); got[len(got)-1] != "cancel [run-1]" {
		t.Errorf("the server saw %q", got)
	}
}

// A run that has ended while its stream was silent is read again, once, for the rest.
func TestV1ProbeOfARunThatHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		rest    string
		outcome event.Outcome
		visible string
	}{
		"the rest is there":     {"", event.Completed, said},
		"the rest is not there": {"pings", event.Cancelled, "One two "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newV1(t)
			f.scripts = [][]string{plainRun(spoken...)}
			f.faults = []fault{{how: "pings", frames: 3}, {how: c.rest, frames: 1}}
			a := f.agent(nil)
			s := newStage(t).run(a, "hello")
			s.untilText("two ")
			eventually(t, "it is pinged", func() bool { return f.pinged() > 0 })
			f.says("completed")
			if err := a.Probe(t.Context(), s.input("hello")); err != nil {
				t.Fatalf("the run has ended, and its stream is read again: %v", err)
			}
			if c.rest != "" {
				pings := f.pinged()
				eventually(t, "the stream was taken up", func() bool {
					return strings.Contains(strings.Join(f.lines(), "\n"), "resume run-1 after 2") && f.pinged() > pings+5
				})
				var shown *agent.Error
				if err := a.Probe(t.Context(), s.input("hello")); !errors.As(err, &shown) || shown.Code != codeLost {
					t.Errorf("the stream was read again in vain: %v", err)
				}
				s.stop()
			}
			s.want(c.outcome, "", c.visible)
			if c.rest == "" {
				want := []string{"create conv-1 of agent-1", "send message to conv-1: run-1", "status of run-1", "resume run-1 after 2"}
				if got := f.lines(); !reflect.DeepEqual(got, want) {
					t.Errorf("the server saw %q, want %q", got, want)
				}
			}
		})
	}
	if err := newV1(t).agent(nil).Probe(t.Context(), agent.Input{Turn: "another"}); err == nil {
		t.Error("a turn of which nothing is known counts as alive")
	}
}

// The App Server is asked what its loop does before a silent turn fails.
func TestAppServerProbe(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"One ", "gate g", "two."}}
	a := f.agent(nil)
	s := newStage(t).run(a, "hello")
	s.untilText("One ")
	if err := a.Probe(t.Context(), s.input("hello")); err != nil {
		t.Errorf("the loop runs: %v", err)
	}
	f.mu.Lock()
	f.idle = true
	f.mu.Unlock()
	var shown *agent.Error
	if err := a.Probe(t.Context(), s.input("hello")); !errors.As(err, &shown) || shown.Code != codeLost {
		t.Errorf("the loop runs nothing: %v", err)
	}
	close(f.gate("g"))
	s.want(event.Completed, "", "One two.")
	if err := a.Probe(t.Context(), s.input("hello")); err == nil {
		t.Error("a turn that has ended counts as alive")
	}
}
