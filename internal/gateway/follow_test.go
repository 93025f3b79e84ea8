package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// following is a gateway with an agent that follows its sessions, and a conversation that keeps one.
func following(t *testing.T, j journal.Journal, up *agenttest.Follower, change func(*gateway.Config)) (*testGateway, string) {
	t.Helper()
	h := newTestGateway(t, j, one(up), change)
	conv := h.create(alice)
	h.ended(conv, h.send(conv, "hello").Turn)
	synctest.Wait()
	return h, conv
}

// holding is a run that writes a text and continues until release is closed or it is detached.
func holding(text string, release <-chan struct{}) agenttest.RunFunc {
	return func(ctx context.Context, _ agent.Input, _ json.RawMessage, out *agent.Emitter) error {
		if err := out.Text(text); err != nil {
			return err
		}
		select {
		case <-release:
			return out.Text(", done")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// over returns an entry of a run that is over.
func over(key, answers, text string) agent.Entry {
	return agent.Entry{Key: key, Source: "cron", Run: &agent.Run{Answers: answers, Ops: []event.Event{
		{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindText}},
		{Type: event.PartAppend, Message: "m", Part: "t", Text: text},
		{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed, Usage: &event.Usage{Output: 7}}},
	}}}
}

func live(key, answers, parent string) agent.Entry {
	return agent.Entry{Key: key, Run: &agent.Run{Answers: answers, Parent: parent, State: json.RawMessage(`"begun"`)}}
}

// turnOf returns the turn that contains a text.
func turnOf(t *testing.T, tr *transcript.Transcript, text string) *transcript.Turn {
	t.Helper()
	for _, m := range tr.Messages {
		if m.Turn != "" && strings.HasPrefix(m.Visible(), text) {
			return tr.Turn(m.Turn)
		}
	}
	t.Fatalf("no turn says %q among %q", text, texts(tr))
	return nil
}

// Messages and runs of a session that began outside the gateway are shown once: live, after a lost connection, and after a restart.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, up := memory.New(), &agenttest.Follower{}
		h, conv := following(t, j, up, nil)
		up.SetRun("r1", func(ctx context.Context, in agent.Input, state json.RawMessage, out *agent.Emitter) error {
			if in.Message.Text != "hi from tui" || in.Key != "r1" || string(in.Session) != `"`+conv+`"` || string(state) != `"begun"` {
				t.Errorf("observed with %+v, %s", in, state)
			}
			if in.Principal != (agent.Principal{Tenant: "t1", Subject: "alice"}) {
				t.Errorf("on behalf of %+v", in.Principal)
			}
			return out.Text("hi tui")
		})
		at := time.Now().Add(-time.Minute)
		note := agent.Entry{Key: "n1", Source: "inject", Message: &agent.Message{Role: event.Assistant, Text: "a note"}}
		up.AddEntries(conv, agenttest.MessageEntry("m1", "tui", "hi from tui", at), live("r1", "m1", ""), note)
		synctest.Wait()
		want := []string{"user: hello", "assistant: hello", "user: hi from tui", "assistant: a note", "assistant: hi tui"}
		tr := h.view(conv)
		wantTexts(t, tr, want...)
		if m := tr.Messages[2]; m.Source != "tui" || m.At != at.UnixMilli() || m.Turn != "" {
			t.Errorf("the message of the other client: %+v", m)
		}
		if m := tr.Messages[3]; m.Source != "inject" || m.Turn != "" {
			t.Errorf("the note: %+v", m)
		}
		run := turnOf(t, tr, "hi tui")
		if run.Answers != tr.Messages[2].ID || run.Agent != "a" || run.Outcome != event.Completed {
			t.Errorf("the run: %+v", run)
		}

		up.FailFollow(errors.New("cut")) // all entries are added again
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if up.FollowCalls() != 2 {
			t.Errorf("followed %d times, want 2", up.FollowCalls())
		}
		wantTexts(t, h.view(conv), want...)
		h.close()

		up.AddEntries(conv, over("r2", "m1", "while you were away"))
		h = newTestGateway(t, j, one(up), nil)
		defer h.close()
		synctest.Wait()
		want = append(want, "assistant: while you were away")
		tr = h.view(conv)
		wantTexts(t, tr, want...)
		if run := turnOf(t, tr, "while"); run.Answers != tr.Messages[2].ID || run.Outcome != event.Completed || run.Usage.Output != 7 {
			t.Errorf("the run that was missed: %+v", run)
		}
		// The gateway's own messages come back under their ids.
		up.AddEntries(conv, agenttest.MessageEntry(tr.Messages[0].ID, "", "hello", at), over(tr.Turns[0].ID, "", "hello"))
		synctest.Wait()
		wantTexts(t, h.view(conv), want...)
		// A turn of the gateway still works.
		wantOutcome(t, h.ended(conv, h.send(conv, "again").Turn), event.Completed, "")
	})
}

// External runs overlap each other and the turns of the queue: neither waits for the other.
func TestObservedOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, mine := make(chan struct{}), make(chan struct{})
		up := &agenttest.Follower{Turn: func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			if in.Message.Text == "hold" {
				<-mine
			}
			return out.Text("re: " + in.Message.Text)
		}}
		h, conv := following(t, nil, up, func(c *gateway.Config) { c.MaxQueued = 1 })
		defer h.close()
		for _, key := range []string{"r1", "r2"} {
			up.SetRun(key, holding(key, release))
			up.AddEntries(conv, live(key, "", ""))
			synctest.Wait()
		}
		held := h.send(conv, "hold")
		queued := h.send(conv, "queued")
		if held.State != event.MessageStarted || queued.State != event.MessageQueued {
			t.Errorf("states %s, %s", held.State, queued.State)
		}
		h.refused(conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "full"}}, gateway.ReasonFull)
		h.refused(conv, gateway.Command{Type: gateway.CommandTruncate}, gateway.ReasonUnfinished)
		close(mine)
		wantOutcome(t, h.ended(conv, held.Turn), event.Completed, "")
		wantOutcome(t, h.ended(conv, queued.Turn), event.Completed, "")
		for _, key := range []string{"r1", "r2"} {
			if run := turnOf(t, h.view(conv), key); !run.Unfinished() {
				t.Errorf("%s ended with another turn: %+v", key, run)
			}
		}
		h.refused(conv, gateway.Command{Type: gateway.CommandTruncate}, gateway.ReasonUnfinished)
		close(release)
		synctest.Wait()
		wantTexts(t, h.view(conv), "user: hello", "assistant: re: hello", "assistant: r1, done", "assistant: r2, done",
			"user: hold", "user: queued", "assistant: re: hold", "assistant: re: queued")
		h.do(conv, gateway.Command{Type: gateway.CommandTruncate})
	})
}

// An observed turn can be stopped, and its requests can be answered, like those of other turns.
func TestObservedStopAndAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 1)
		up := &agenttest.Follower{OnAnswer: func(in agent.Input, decision event.Decision) { told <- in.Key + " " + string(decision) }}
		h, conv := following(t, nil, up, nil)
		defer h.close()
		why := make(chan error, 1)
		up.SetRun("r1", func(ctx context.Context, _ agent.Input, _ json.RawMessage, out *agent.Emitter) error {
			if err := out.Text("forever"); err != nil {
				return err
			}
			<-ctx.Done()
			why <- context.Cause(ctx)
			return context.Cause(ctx)
		})
		approved := make(chan struct{})
		up.SetRun("r2", func(ctx context.Context, _ agent.Input, _ json.RawMessage, out *agent.Emitter) error {
			if err := out.Text("may I"); err != nil {
				return err
			}
			if err := out.Emit([]event.Event{{Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: "q", Kind: event.RequestApproval}}}}, nil); err != nil {
				return err
			}
			<-approved
			return out.Text(" and I did")
		})
		up.AddEntries(conv, live("r1", "", ""))
		synctest.Wait()
		up.AddEntries(conv, live("r2", "", ""))
		synctest.Wait()
		tr := h.view(conv)
		stopped, asks := turnOf(t, tr, "forever").ID, turnOf(t, tr, "may I").ID
		h.do(conv, gateway.Command{Type: gateway.CommandStop, Turn: stopped})
		if err := <-why; !errors.Is(err, agent.ErrTurnOver) {
			t.Errorf("stopped with the cause %v", err)
		}
		wantOutcome(t, h.ended(conv, stopped), event.Cancelled, "")
		h.do(conv, gateway.Command{Type: gateway.CommandAnswer, Turn: asks, Request: "q", Decision: event.Approve})
		if got := <-told; got != "r2 approve" {
			t.Errorf("told %q", got)
		}
		close(approved)
		wantOutcome(t, h.ended(conv, asks), event.Completed, "")
		wantTexts(t, h.view(conv), "user: hello", "assistant: hello", "assistant: forever", "assistant: may I and I did")

		// The limit on silence applies too.
		up.SetRun("r3", holding("silent", nil))
		up.AddEntries(conv, live("r3", "", ""))
		synctest.Wait()
		silent := turnOf(t, h.view(conv), "silent").ID
		time.Sleep(gateway.DefaultSilence + time.Second)
		wantOutcome(t, h.ended(conv, silent), event.Failed, "silence")
	})
}

// A run can outlive the turn that started it, even over a restart.
func TestObservedOutlivesParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, spawn, up := memory.New(), make(chan struct{}), &agenttest.Follower{}
		up.Turn = func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			if in.Message.Text == "spawn" {
				<-spawn
			}
			return out.Text("re: " + in.Message.Text)
		}
		h, conv := following(t, j, up, nil)
		ack := h.send(conv, "spawn")
		synctest.Wait()
		resumed := make(chan json.RawMessage, 2)
		release := make(chan struct{})
		up.SetRun("child", func(ctx context.Context, in agent.Input, state json.RawMessage, out *agent.Emitter) error {
			resumed <- state
			if string(state) == `"begun"` {
				if err := out.Emit(over("", "", "child").Run.Ops[:3], json.RawMessage(`"half"`)); err != nil {
					return err
				}
			}
			select {
			case <-release:
				return out.Emit([]event.Event{{Type: event.PartAppend, Message: "m", Part: "t", Text: ", whole"}}, nil)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		up.SetRun("grandchild", holding("grandchild", release))
		up.AddEntries(conv, live("child", "", ack.Turn), live("grandchild", "", "child"))
		synctest.Wait()
		close(spawn)
		wantOutcome(t, h.ended(conv, ack.Turn), event.Completed, "")
		synctest.Wait()
		child := turnOf(t, h.view(conv), "child")
		if child.Parent != ack.Turn || !child.Unfinished() {
			t.Fatalf("the child ended with its parent: %+v", child)
		}
		if g := turnOf(t, h.view(conv), "grandchild"); g.Parent != child.ID || !g.Unfinished() {
			t.Fatalf("the grandchild: %+v", g)
		}
		h.close()
		h = newTestGateway(t, j, one(up), nil)
		defer h.close()
		if first, second := <-resumed, <-resumed; string(first) != `"begun"` || string(second) != `"half"` {
			t.Errorf("states %s, %s", first, second)
		}
		close(release)
		wantOutcome(t, h.ended(conv, child.ID), event.Completed, "")
		synctest.Wait()
		if tr := h.view(conv); tr.Visible(child.ID) != "child, whole" {
			t.Errorf("the child says %q", tr.Visible(child.ID))
		}
	})
}

// An observed turn whose agent was removed before the restart ends as interrupted.
func TestObservedWithoutAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, up := memory.New(), &agenttest.Follower{}
		h, conv := following(t, j, up, nil)
		up.SetRun("r1", holding("half", nil))
		up.AddEntries(conv, live("r1", "", ""))
		synctest.Wait()
		turn := turnOf(t, h.view(conv), "half").ID
		h.close()
		h = newTestGateway(t, j, one(agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text("x") })), nil)
		defer h.close()
		wantOutcome(t, h.ended(conv, turn), event.Interrupted, "gateway_restart")
		if keys, err := j.Keys(t.Context(), "turn/"+turn+"/observed"); err != nil || len(keys) > 0 {
			t.Errorf("its mark is left: %v, %v", keys, err)
		}
	})
}

// Entries, cursor and keys are one commit: an Add that fails has added nothing, and a repetition adds everything.
func TestAddIsAtomic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, up := memory.New(), &agenttest.Follower{}
		h, conv := following(t, j, up, nil)
		h.journal.fail(journal.ErrFenced)
		up.AddEntries(conv, agenttest.MessageEntry("m1", "tui", "one", time.Now()), over("r1", "m1", "two"))
		synctest.Wait()
		wantTexts(t, h.view(conv), "user: hello", "assistant: hello")
		if keys, err := j.Keys(t.Context(), "entry/"); err != nil || len(keys) > 0 {
			t.Errorf("keys %v, %v", keys, err)
		}
		h.journal.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantTexts(t, h.view(conv), "user: hello", "assistant: hello", "user: one", "assistant: two")
		cursor, err := j.Get(t.Context(), "cursor/"+conv+"/a")
		if err != nil || string(cursor) != "2" {
			t.Errorf("cursor %s, %v", cursor, err)
		}
		h.close()
	})
}

// Removing all messages deletes the session, and so does deleting the conversation. No entry can be added then, and no key remains.
func TestFollowDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, up := memory.New(), &agenttest.Follower{}
		h, conv := following(t, j, up, nil)
		defer h.close()
		up.AddEntries(conv, agenttest.MessageEntry("m1", "tui", "one", time.Now()))
		synctest.Wait()
		h.do(conv, gateway.Command{Type: gateway.CommandTruncate})
		up.AddEntries(conv, agenttest.MessageEntry("m2", "tui", "two", time.Now()))
		synctest.Wait()
		wantTexts(t, h.view(conv))
		if _, err := j.Get(t.Context(), "cursor/"+conv+"/a"); !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("the cursor outlived its session: %v", err)
		}
		// The next turn stores a session again. The removed messages don't come back.
		h.ended(conv, h.send(conv, "anew").Turn)
		synctest.Wait()
		if tr := h.view(conv); len(tr.Messages) != 3 || tr.Message(tr.Messages[0].ID).Visible() != "anew" {
			t.Errorf("texts %q", texts(tr))
		}
		up.SetRun("r1", holding("half", nil))
		up.AddEntries(conv, live("r1", "", ""))
		synctest.Wait()
		turnOf(t, h.view(conv), "half")
		h.do(conv, gateway.Command{Type: gateway.CommandDelete})
		up.AddEntries(conv, agenttest.MessageEntry("m3", "tui", "three", time.Now()))
		synctest.Wait()
		for _, prefix := range []string{"session/", "cursor/", "entry/", "turn/"} {
			if keys, err := j.Keys(t.Context(), prefix); err != nil || len(keys) > 0 {
				t.Errorf("left: %v, %v", keys, err)
			}
		}
	})
}

// unsure is a journal that commits, and reports once that the result is unknown.
type unsure struct {
	journal.Journal
	now atomic.Bool
}

func (u *unsure) Append(ctx context.Context, b journal.Batch) error {
	if err := u.Journal.Append(ctx, b); err != nil || !u.now.Swap(false) {
		return err
	}
	return journal.ErrUnknown
}

// If the result of a commit is unknown but it succeeded, its entries are added once, and its run is observed.
func TestAddUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, up := &unsure{Journal: memory.New()}, &agenttest.Follower{}
		h, conv := following(t, j, up, nil)
		defer h.close()
		release := make(chan struct{})
		up.SetRun("r1", holding("run", release))
		j.now.Store(true)
		up.AddEntries(conv, agenttest.MessageEntry("m1", "tui", "one", time.Now()), live("r1", "m1", ""))
		time.Sleep(time.Minute)
		synctest.Wait()
		close(release)
		synctest.Wait()
		tr := h.view(conv)
		wantTexts(t, tr, "user: hello", "assistant: hello", "user: one", "assistant: run, done")
		wantOutcome(t, turnOf(t, tr, "run"), event.Completed, "")
	})
}

// If a turn can't be resumed, all turns inside it end once, at any depth. Turns inside an observed turn end with that.
func TestInnerTurnsAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nested := func(name string) []event.Event {
			return []event.Event{
				{Type: event.TurnStart, Turn: "own"},
				{Type: event.TurnStart, Turn: "inner", Body: &event.Body{Agent: name + " inner"}},
				{Type: event.TurnStart, Turn: "innermost", Body: &event.Body{Agent: name + " innermost", Parent: "inner"}},
			}
		}
		observe := func(ctx context.Context, _ agent.Input, state json.RawMessage, out *agent.Emitter) error {
			if string(state) == `"begun"` {
				if err := out.Emit(nested("observed"), json.RawMessage(`"nested"`)); err != nil {
					return err
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}
		j, up := memory.New(), &agenttest.Follower{}
		up.SetRun("r1", observe)
		up.Turn = func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			if in.Message.Text != "nest" {
				return nil
			}
			if err := out.Emit(nested("mine"), nil); err != nil {
				return err
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		h, conv := following(t, j, up, nil)
		ack := h.send(conv, "nest")
		child := live("r1", "", ack.Turn)
		up.AddEntries(conv, child)
		synctest.Wait()
		h.journal.fail(journal.ErrFenced) // like a kill: nothing more is written
		h.close()
		h = newTestGateway(t, j, one(up), nil)
		defer h.close()
		synctest.Wait()
		want := map[string]event.Outcome{
			"mine inner": event.Interrupted, "mine innermost": event.Interrupted, "observed inner": event.Completed, "observed innermost": event.Completed,
		}
		for _, turn := range h.view(conv).Turns {
			if turn.Unfinished() {
				t.Errorf("unfinished: %+v", turn)
			}
			if o, ok := want[turn.Agent]; ok {
				if delete(want, turn.Agent); turn.Outcome != o {
					t.Errorf("%s ended as %s, want %s", turn.Agent, turn.Outcome, o)
				}
			}
		}
		if len(want) > 0 {
			t.Errorf("not there: %v", want)
		}
	})
}

// The upstream run of a running turn is not shown a second time, even if the agent doesn't know that it belongs to the turn.
func TestFollowSkipsTheRunOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		up := &agenttest.Follower{Turn: func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			if in.Message.Text != "hold" {
				return out.Text("hello")
			}
			err := out.Emit([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: "ours"}}}}, nil)
			if err != nil {
				return err
			}
			<-release
			return out.Text("mine")
		}}
		h, conv := following(t, memory.New(), up, nil)
		defer h.close()
		turn := h.send(conv, "hold").Turn
		synctest.Wait()
		up.SetRun("ours", holding("doubled", release))
		up.SetRun("theirs", holding("theirs", release))
		up.AddEntries(conv, live("ours", "", ""), live("theirs", "", ""))
		synctest.Wait()
		close(release)
		wantOutcome(t, h.ended(conv, turn), event.Completed, "")
		synctest.Wait()
		wantTexts(t, h.view(conv), "user: hello", "assistant: hello", "user: hold", "assistant: theirs, done", "assistant: mine")
	})
}
