package letta

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// deaf starts and stops a turn on a server that doesn't notice the stop.
func deaf(t *testing.T, f *appServer, a *socketAgent) *stage {
	t.Helper()
	a.times.abort = time.Millisecond
	s := newStage(t).run(a, "hello")
	s.untilText("One ")
	f.until("the model hangs", func() bool { return slices.Contains(f.log, "deaf") })
	s.stop()
	<-s.done
	a.times.abort = quick.abort
	return s
}

// behind starts a turn whose message the server queues, because another client's turn waits at a gate.
func behind(t *testing.T, f *appServer, a *socketAgent, other *stage) *stage {
	t.Helper()
	s := newStage(t)
	s.session, s.key = other.session, "ours"
	s.run(a, "our message")
	s.until("the phase is waiting", func(tr *transcript.Transcript) bool { return tr.Turn(turnID).Phase == "waiting" })
	return s
}

// If the server doesn't notice a stop, it queues the next message until its model sends a token. Meanwhile the next turn has the phase
// "waiting" and stays alive.
func TestAppServerMissesStop(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"One ", "deaf model"}, {"Ours."}}
	a := f.agent(nil)
	other := deaf(t, f, a)
	s := behind(t, f, a, other)
	before := -1
	s.until("progress", func(*transcript.Transcript) bool {
		if before < 0 {
			before = s.alive
		}
		return s.alive > before+2
	})
	close(f.gate("model"))
	s.want(event.Completed, "", "Ours.")
	if p := s.fold.Turn(turnID).Phase; p != "thinking" {
		t.Errorf("the phase after the turn is %q", p)
	}
	if got := strings.Join(f.lines(), "\n"); strings.Count(got, "our message") != 1 {
		t.Errorf("the server saw %s", got)
	}
}

// A message that stays queued for too long fails, and is not answered later.
func TestAppServerQueueLimit(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"One ", "deaf model"}, {"Next."}}
	a := f.agent(nil)
	other := deaf(t, f, a)
	a.times.queueLimit = 20 * time.Millisecond
	s := newStage(t)
	s.session, s.key = other.session, "ours"
	s.run(a, "our message").want(event.Failed, codeBusy, "")
	if !s.fold.Turn(turnID).Error.Retryable {
		t.Error("the error is not retryable")
	}
	close(f.gate("model"))
	f.until("the first turn has ended", func() bool { return f.convs["local-conv-1"].cancel == nil })
	a.times.queueLimit = limit
	next := newStage(t)
	next.session, next.key = s.session, "next"
	next.run(a, "another").want(event.Completed, "", "Next.")
}

// Stopping a turn whose message is queued doesn't end the other client's turn.
func TestAppServerStopWhileQueued(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Theirs.", "gate theirs", "Theirs too."}, {"And more."}}
	a := f.agent(nil)
	other := newStage(t).run(a, "their message")
	other.untilText("Theirs.")
	s := behind(t, f, a, other)
	s.stop()
	s.want(event.Cancelled, "", "")
	<-s.done
	close(f.gate("theirs"))
	other.want(event.Completed, "", "Theirs.Theirs too.")
	if got := f.lines(); slices.Contains(got, "abort") || got[len(got)-1] != "remove q-2" {
		t.Errorf("the server saw %q", got)
	}
	next := newStage(t)
	next.session, next.key = other.session, "next"
	next.run(a, "another").want(event.Completed, "", "And more.")
}

// abort doesn't wait if no turn is running.
func TestAppServerAbortWithoutTurn(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Hi."}}
	a := f.agent(nil)
	a.times.abort = 2 * limit
	s := newStage(t).run(a, "hello")
	s.want(event.Completed, "", "Hi.")
	s.ctx = t.Context()
	l, _, err := a.join(s.ctx, s.out, session{Agent: "agent-1", Conversation: "local-conv-1"}, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	turn := newTurn(s.input("hello"), s.out, letta.Code())
	turn.saved.Session = session{Agent: "agent-1", Conversation: "local-conv-1"}
	done := make(chan struct{})
	go func() { defer close(done); a.abort(t.Context(), turn, l) }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal("abort waits although no turn is running")
	}
}

// A queued message starts only after the other client's run is recorded; otherwise its answer would be shown first.
func TestQueuedMessageStartsAfterCatchUp(t *testing.T) {
	s := newStage(t)
	k := newAppServer(t).agent(nil)
	in := s.input("hello")
	w := &socketWatch{hurry: make(chan struct{}, 1), finished: make(chan struct{})}
	k.watches = map[string]*socketWatch{in.Conversation: w}
	waiting := &socketTurn{agent: k, turn: newTurn(in, s.out, letta.Code())}
	waiting.queue.isQueued = true
	taken := make(chan error, 1)
	go func() { taken <- waiting.markStarted(t.Context()) }()
	select {
	case <-w.hurry:
	case err := <-taken:
		t.Fatalf("the phase is not waiting: %v", err)
	}
	select {
	case err := <-taken:
		t.Fatalf("the phase is not waiting: %v", err)
	default:
	}
	w.upToDate.update(true)
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	k.leaveOrder(waiting)
}

// cutQueued breaks the connection whose message is in the queue. If the server notices, it has dropped the message before cutQueued returns,
// and so before Leat can reconnect.
func cutQueued(f *appServer, notices bool) {
	f.mu.Lock()
	v := f.convs["local-conv-1"].queue[0].from
	f.mu.Unlock()
	v.silent.Store(!notices)
	if notices {
		v.mu.Lock()
		v.gone = true
		v.mu.Unlock()
		v.detach()
	}
	_ = v.conn.CloseNow()
}

// A message that the server drops with its connection is sent again, once.
func TestAppServerConnectionBreaksWhileQueued(t *testing.T) {
	for name, notices := range map[string]bool{"the server drops the message": true, "the server still has the message": false} {
		t.Run(name, func(t *testing.T) {
			f := newAppServer(t)
			f.scripts = [][]string{{"Theirs.", "gate theirs", "Theirs too."}, {"Ours."}}
			a := f.agent(nil)
			other := newStage(t).run(a, "their message")
			other.untilText("Theirs.")
			s := behind(t, f, a, other)
			cutQueued(f, notices)
			f.until("the message is sent again", func() bool {
				return strings.Count(strings.Join(f.log, "\n"), "queued our message") == 2
			})
			close(f.gate("theirs"))
			other.want(event.Completed, "", "Theirs.Theirs too.")
			s.want(event.Completed, "", "Ours.")
			if got := heard(f, "our message"); got != 1 {
				t.Errorf("the agent heard the message %d times", got)
			}
			if removed := slices.Contains(f.lines(), "remove q-2"); removed == notices {
				t.Errorf("the server saw %q", f.lines())
			}
		})
	}
}

// A message that the server starts while Leat searches for it is not sent again.
func TestAppServerStartsMessageDuringSearch(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Hi."}, {"Theirs.", "gate theirs"}, {"Ours ", "gate ours", "too."}}
	a := f.agent(nil)
	first := newStage(t).run(a, "hello")
	first.want(event.Completed, "", "Hi.")
	theirs := f.watch("local-conv-1")
	input := `{"type":"input","request_id":"theirs","runtime":{"agent_id":"agent-1","conversation_id":"local-conv-1"},"payload":{"kind":"create_message","messages":[{"role":"user","content":"their message","client_message_id":"cm-1"}]}}`
	if err := theirs.Write(t.Context(), websocket.MessageText, []byte(input)); err != nil {
		t.Fatal(err)
	}
	f.until("the other client's turn runs", func() bool { return f.convs["local-conv-1"].cancel != nil })
	s := behind(t, f, a, first)
	f.mu.Lock()
	f.listing = func() {
		close(f.gate("theirs"))
		f.until("the message was started", func() bool { return len(f.convs["local-conv-1"].queue) == 0 && f.convs["local-conv-1"].cancel != nil })
	}
	f.mu.Unlock()
	cutQueued(f, false)
	s.untilText("Ours ")
	close(f.gate("ours"))
	s.want(event.Completed, "", "Ours too.")
	if got := heard(f, "our message"); got != 1 {
		t.Errorf("the agent heard the message %d times: %q", got, f.lines())
	}
}

// heard counts the messages with the given text in the server's histories.
func heard(f *appServer, text string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.convs["local-conv-1"].past {
		if content, ok := m["content"].([]any); ok && m["message_type"] == "user_message" && content[len(content)-1].(map[string]any)["text"] == text {
			n++
		}
	}
	return n
}
