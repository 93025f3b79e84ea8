package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
)

var shared = session{Agent: "agent-1", Conversation: "conv-1"}

const ourTurn = "01a20447-51d6-74af-8605-b4f68a856abf"

// v1Book returns a fake server, an agent of it, and the book of one conversation.
func v1Book(t *testing.T) (*v1, *restAgent, *book) {
	f := newV1(t)
	f.made(t, "conv-1")
	r := f.agent(nil)
	b := newBook(t, shared, ourTurn, "our-message")
	b.followed(r)
	b.ready()
	return f, r, b
}

// followed follows the conversation until the function that it returns is called.
func (b *book) followed(a agent.Follower) (end func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Follow(ctx, b) // always returns the context's error
	}()
	end = func() { cancel(); <-done }
	b.t.Cleanup(end)
	return end
}

// said returns the text that a reader sees after an entry's events, and the outcome.
func (b *book) said(e agent.Entry) (text string, outcome event.Outcome) {
	b.t.Helper()
	if e.Run == nil || e.Run.Ops == nil {
		b.t.Fatalf("the entry is %+v, want a run that has ended", e)
	}
	s := newStage(b.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(e.Run.Ops)
	return s.fold.Visible(turnID), s.fold.Turn(turnID).Outcome
}

func TestV1FollowsABackgroundRun(t *testing.T) {
	f, r, b := v1Book(t)
	f.faults = []fault{{frames: 3, how: "gate"}, {}}
	f.script("run-1", plainRun(spoken...)...)
	f.begin("run-1", "conv-1", "background")
	all := b.wait(1) // the server stores the message only after the first step
	if all[0].Key != "run-1" || all[0].Run == nil || all[0].Run.Ops != nil || all[0].Source == "" {
		t.Fatalf("the entry is %+v, want the run", all[0])
	}
	s := watchRun(t, r, all[0])
	s.untilText("One two ")
	s = s.kill() // Leat restarts meanwhile
	in := s.input("")
	s.start(func(ctx context.Context) error { return r.Observe(ctx, in, s.state, s.out) })
	close(f.gate("gate"))
	s.want(event.Completed, "", said)
	f.store("run-1", rowUser, "hello from there", rowAnswer, said)
	f.finish("run-1", "completed", "end_turn")
	all = b.wait(2)
	theirMessage(t, all[1], "hello from there")
}

func watchRun(t *testing.T, r *restAgent, e agent.Entry) *stage {
	s := newStage(t)
	s.key, s.state = e.Key, e.Run.State
	in := s.input("")
	s.start(func(ctx context.Context) error { return r.Observe(ctx, in, s.state, s.out) })
	return s
}

// The server lists a blocking run without its conversation and never updates its status, so only the history shows its end.
func TestV1FollowsABlockingRun(t *testing.T) {
	f, _, b := v1Book(t)
	f.made(t, "conv-2")
	f.begin("run-1", "conv-1", "blocking")
	f.begin("run-2", "conv-2", "blocking")
	f.store("run-2", rowUser, "elsewhere", rowAnswer, "Elsewhere.")
	f.store("run-1", rowUser, "hello", rowAnswer, "Theirs.")
	all := b.wait(2)
	theirMessage(t, all[0], "hello")
	if text, outcome := b.said(all[1]); text != "Theirs." || outcome != event.Completed || all[1].Run.Answers != all[0].Key {
		t.Errorf("the run said %q and ended %s", text, outcome)
	}
}

func TestV1FollowsRunsDuringDowntime(t *testing.T) {
	f := newV1(t)
	f.made(t, "conv-1")
	r := f.agent(nil)
	b := newBook(t, shared, ourTurn, "our-message")
	end := b.followed(r)
	b.ready()
	end()
	first := b.cursor
	f.begin("run-1", "conv-1", "streaming")
	f.store("run-1", rowUser, "first", "reasoning_message", "", rowAnswer, "Theirs.")
	f.finish("run-1", "completed", "end_turn")
	f.begin("run-2", "conv-1", "background")
	f.store("run-2", rowUser, "ours|"+ourTurn+".our-message", rowRequest, "call-1")
	f.finish("run-2", "completed", waitingStop)
	f.begin("run-3", "conv-1", "background") // continues after Leat's approval
	f.store("run-3", rowResponse, "call-1|yes", rowReturn, "call-1|given", rowAnswer, "Ours.")
	f.finish("run-3", "completed", "end_turn")
	f.begin("run-4", "conv-1", "background")
	f.store("run-4", rowUser, "second", rowRequest, "call-2")
	f.finish("run-4", "completed", waitingStop)
	f.begin("run-5", "conv-1", "background")
	f.store("run-5", rowResponse, "call-2|no", rowReturn, "call-2|denied", rowAnswer, "Not then.")
	f.finish("run-5", "failed", "llm_api_error")
	for range 2 { // reading twice must not add entries twice
		end = b.followed(r)
		all := b.wait(4)
		theirMessage(t, all[0], "first")
		theirMessage(t, all[2], "second")
		for i, want := range map[int]string{1: "Theirs. completed", 3: "Not then. failed"} {
			if text, outcome := b.said(all[i]); fmt.Sprint(text, " ", outcome) != want {
				t.Errorf("run %d: %s %s, want %s", i, text, outcome, want)
			}
		}
		s := newStage(t)
		s.mu.Lock()
		s.emit(all[3].Run.Ops)
		for _, p := range s.fold.Messages[0].Parts {
			if p.Kind == event.KindTool && p.State != event.PartDenied {
				t.Errorf("the tool is %q, want %q", p.State, event.PartDenied)
			}
		}
		s.mu.Unlock()
		end()
		b.mu.Lock()
		b.cursor = first // as if nothing had been recorded
		b.mu.Unlock()
	}
}

// An approval that another client gives at the server closes the request in Leat.
func TestV1ApprovalOfAnotherClient(t *testing.T) {
	for _, way := range []string{"background", "blocking"} {
		t.Run(way, func(t *testing.T) {
			f, r, b := v1Book(t)
			f.scripts = [][]string{{callOf, waitFor, counted, fin}}
			s := newStage(t)
			s.session = b.sess
			in := s.input("hello")
			in.Conversation, in.Turn, in.Message.ID = followed, ourTurn, "our-message"
			s.start(func(ctx context.Context) error { return r.Run(ctx, in, s.out) })
			s.untilAsked()
			f.begin("run-1", "conv-1", "background")
			f.store("run-1", rowUser, "hello|"+ourTurn+".our-message", rowRequest, "c1")
			f.finish("run-1", "completed", waitingStop)
			f.script("run-2", append([]string{`{"id":"message-r","message_type":"tool_return_message","tool_call_id":"c1","tool_return":"given","status":"success","run_id":"RUN","seq_id":SEQ}`}, plainRun("Done.")...)...)
			f.begin("run-2", "conv-1", way)
			f.store("run-2", rowResponse, "c1|yes", rowReturn, "c1|given", rowAnswer, "Done.")
			if way == "background" {
				f.finish("run-2", "completed", "end_turn")
			}
			s.want(event.Completed, "", "Done.")
			b.wait(0)
		})
	}
}

// A run that starts while Leat sends a message may answer that message, so it isn't recorded as another client's.
func TestV1OwnRunIsNotRecorded(t *testing.T) {
	f, r, b := v1Book(t)
	turn := newTurn(agent.Input{Conversation: followed, Turn: ourTurn}, newStage(t).out, letta.Dialect())
	r.mu.Lock()
	r.activeTurns[ourTurn] = turn
	r.mu.Unlock()
	turn.setAwaitsRun(true)
	f.begin("run-1", "conv-1", "background")
	looks := f.requests("GET /v1/conversations/{id}/messages")
	eventually(t, "the history was read", func() bool { return f.requests("GET /v1/conversations/{id}/messages") > looks+2 })
	b.wait(0)
	r.setTurnOfRun("run-1", turn) // the server has named it
	turn.setAwaitsRun(false)
	f.begin("run-2", "conv-1", "background")
	if all := b.wait(1); all[0].Key != "run-2" {
		t.Errorf("the entry is %+v", all[0])
	}
}

// A background run that failed before the server stored any message is read from its stream.
func TestV1FollowsAFailedRun(t *testing.T) {
	f, r, b := v1Book(t)
	eventually(t, "a list of runs", func() bool { return f.requests("GET /v1/runs/{$}") > 0 })
	f.script("run-1", `{"message_type":"stop_reason","stop_reason":"llm_api_error"}`, `error|{"message_type":"error_message","run_id":"RUN","error_type":"llm_authentication","message":"Authentication failed.","seq_id":SEQ}`)
	f.begin("run-1", "conv-1", "background")
	f.finish("run-1", "failed", "llm_api_error")
	watchRun(t, r, b.wait(1)[0]).want(event.Failed, "llm_authentication", "")
}

func TestV1WithoutRunListIsNotFollowed(t *testing.T) {
	f := newV1(t)
	f.old = true
	r := f.agent(nil)
	if err := r.Follow(t.Context(), newBook(t, shared)); err != nil {
		t.Errorf("Follow returned %v, want nil, since such a server can't be followed", err)
	}
}

func TestV1FollowRetries(t *testing.T) {
	f, _, b := v1Book(t)
	f.mu.Lock()
	f.down = true
	f.mu.Unlock()
	looks := f.requests("GET /v1/runs/{$}")
	f.begin("run-1", "conv-1", "streaming")
	f.store("run-1", rowUser, "hello", rowAnswer, "Theirs.")
	f.finish("run-1", "completed", "end_turn")
	eventually(t, "failed lists of runs", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.refusals > 2 })
	if f.requests("GET /v1/runs/{$}") != looks {
		t.Fatal("the server was not down")
	}
	f.mu.Lock()
	f.down = false
	f.mu.Unlock()
	theirMessage(t, b.wait(2)[0], "hello")
}

// crowd is a session list with many conversations of one agent.
type crowd struct {
	*book
	n int
}

func (c *crowd) List(context.Context) (all []agent.Session, err error) {
	for i := range c.n {
		raw, err := json.Marshal(session{Agent: "agent-1", Conversation: fmt.Sprintf("conv-%d", i+1)})
		if err != nil {
			return nil, err
		}
		all = append(all, agent.Session{Conversation: fmt.Sprint("c", i), Session: raw})
	}
	return all, nil
}

// Following many conversations of an agent takes one list of runs per poll, and one reading of each history.
func TestV1FollowPollsSparingly(t *testing.T) {
	f := newV1(t)
	r := f.agent(nil)
	r.times.pollGap = 0
	c := &crowd{book: newBook(t, shared), n: 200}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Follow(ctx, c) }()
	histories, looks := "GET /v1/conversations/{id}/messages", "GET /v1/runs/{$}"
	eventually(t, "all histories", func() bool { return f.requests(histories) >= c.n })
	at := f.requests(looks)
	eventually(t, "more lists of runs", func() bool { return f.requests(looks) > at+5 })
	f.begin("run-1", "conv-7", "streaming")
	f.store("run-1", rowUser, "hello", rowAnswer, "Theirs.")
	f.finish("run-1", "completed", "end_turn")
	c.wait(2)
	cancel()
	<-done
	if n := f.requests(histories); n > c.n+2 {
		t.Errorf("%d histories were read, want each once, and one more", n)
	}
}

func TestV1Attach(t *testing.T) {
	f := newV1(t)
	f.made(t, "conv-1")
	r := f.agent(nil)
	f.begin("run-1", "conv-1", "blocking")
	f.store("run-1", rowUser, "hello", rowAnswer, "Theirs.")
	f.begin("run-2", "conv-1", "background")
	f.store("run-2", rowUser, "broken", rowAnswer, "Half")
	f.finish("run-2", "failed", "llm_api_error")
	f.begin("run-3", "conv-1", "background") // in progress
	infos, err := r.ListSessions(t.Context(), 10)
	if err != nil || len(infos) != 2 || infos[0].ID != "conv-1" || infos[1].ID != ownConversation {
		t.Fatalf("the sessions are %+v, %v", infos, err)
	}
	for _, unknown := range []string{"conv-9", "x"} {
		if _, err := r.Attach(t.Context(), unknown, true); !errors.Is(err, agent.ErrUnknownSession) {
			t.Errorf("%s: %v, want %v", unknown, err, agent.ErrUnknownSession)
		}
	}
	at, err := r.Attach(t.Context(), "conv-1", true)
	if err != nil {
		t.Fatal(err)
	}
	b := newBook(t, shared)
	if len(at.Entries) != 4 || at.Title != "About tea" || string(at.Session) != string(b.sess) {
		t.Fatalf("attached: %+v", at)
	}
	theirMessage(t, at.Entries[0], "hello")
	for i, want := range map[int]string{1: "Theirs. completed", 3: "Half failed"} {
		if text, outcome := b.said(at.Entries[i]); fmt.Sprint(text, " ", outcome) != want {
			t.Errorf("run %d: %s %s, want %s", i, text, outcome, want)
		}
	}
	b.cursor = at.Cursor
	b.followed(r)
	if all := b.wait(1); all[0].Key != "run-3" { // the others were attached
		t.Errorf("after it: %+v", all)
	}
	if at, err = r.Attach(t.Context(), "conv-1", false); err != nil || at.Entries != nil || at.Cursor == nil {
		t.Errorf("without the history: %+v, %v", at, err)
	}
}

// Another client's run that is silent for too long fails in Leat, but is cancelled at the server only if a user stops it.
func TestV1SilentRunOfAnotherClient(t *testing.T) {
	for _, silent := range []bool{true, false} {
		f, r, b := v1Book(t)
		f.faults = []fault{{frames: 2, how: "pings"}}
		f.script("run-1", plainRun(spoken...)...)
		f.begin("run-1", "conv-1", "background")
		s := watchRun(t, r, b.wait(1)[0])
		s.untilText("One ")
		if silent {
			var failed *agent.Error
			if err := r.Probe(t.Context(), s.input("")); !errors.As(err, &failed) || failed.Code != codeSilence {
				t.Fatalf("asked about the run: %v, want %s", err, codeSilence)
			}
		}
		s.stop()
		<-s.done
		if cancelled := slices.Contains(f.lines(), "cancel [run-1]"); cancelled == silent {
			t.Errorf("silent: %t, cancelled: %t; the server saw %q", silent, cancelled, f.lines())
		}
	}
}
