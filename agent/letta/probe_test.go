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

// Pings don't count as progress: after a restart the server sends them for runs that are dead.
func TestV1PingsAreNotProgress(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{plainRun(spoken...)}
	f.faults = []fault{{how: "reset", frames: 3}, {how: "pings", frames: 1}}
	a := f.agent(nil)
	s := newStage(t).run(a, "hello")
	s.untilText("two ")
	eventually(t, "a ping", func() bool { return f.pinged() > 0 })
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
		t.Errorf("Probe of a run that is listed as running: %v", err)
	}
	// The gateway then ends the turn and cancels the run, which frees the conversation at the server.
	s.stop()
	s.want(event.Cancelled, "", "One two ")
	<-s.done
	if got := f.lines(); got[len(got)-1] != "cancel [run-1]" {
		t.Errorf("the server saw %q", got)
	}
}

// If a run has ended although its stream is silent, the stream is read once more.
func TestV1ProbeOfEndedRun(t *testing.T) {
	for name, c := range map[string]struct {
		rest    string
		outcome event.Outcome
		visible string
	}{
		"the stream has the end":   {"", event.Completed, said},
		"the stream lacks the end": {"pings", event.Cancelled, "One two "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newV1(t)
			f.scripts = [][]string{plainRun(spoken...)}
			f.faults = []fault{{how: "pings", frames: 3}, {how: c.rest, frames: 1}}
			a := f.agent(nil)
			s := newStage(t).run(a, "hello")
			s.untilText("two ")
			eventually(t, "a ping", func() bool { return f.pinged() > 0 })
			f.says("completed")
			if err := a.Probe(t.Context(), s.input("hello")); err != nil {
				t.Fatalf("first Probe of an ended run: %v, want nil", err)
			}
			if c.rest != "" {
				pings := f.pinged()
				eventually(t, "the stream was resumed", func() bool {
					return strings.Contains(strings.Join(f.lines(), "\n"), "resume run-1 after 2") && f.pinged() > pings+5
				})
				var shown *agent.Error
				if err := a.Probe(t.Context(), s.input("hello")); !errors.As(err, &shown) || shown.Code != codeLost {
					t.Errorf("second Probe of an ended run: %v", err)
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
		t.Error("Probe of an unknown turn succeeds")
	}
}

// Before a silent turn fails, Probe asks the App Server for its loop's status.
func TestAppServerProbe(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"One ", "gate g", "two."}}
	a := f.agent(nil)
	s := newStage(t).run(a, "hello")
	s.untilText("One ")
	if err := a.Probe(t.Context(), s.input("hello")); err != nil {
		t.Errorf("Probe while the loop is running: %v", err)
	}
	f.mu.Lock()
	f.idle = true
	f.mu.Unlock()
	var shown *agent.Error
	if err := a.Probe(t.Context(), s.input("hello")); !errors.As(err, &shown) || shown.Code != codeLost {
		t.Errorf("Probe while the loop is idle: %v", err)
	}
	close(f.gate("g"))
	s.want(event.Completed, "", "One two.")
	if err := a.Probe(t.Context(), s.input("hello")); err == nil {
		t.Error("Probe of an ended turn succeeds")
	}
}
