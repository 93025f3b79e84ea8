package gateway_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// crossed is a journal for races: commits wait while hold is in force, and a test can run code right after a read.
type crossed struct {
	journal.Journal
	bar  atomic.Pointer[chan struct{}]
	read atomic.Pointer[func()] // called once, after a read of a whole log
}

func newCrossed() *crossed { return &crossed{Journal: memory.New()} }

// hold makes commits wait until open is called.
func (j *crossed) hold() (open func()) {
	bar := make(chan struct{})
	j.bar.Store(&bar)
	return func() { j.bar.Store(nil); close(bar) }
}

func (j *crossed) Append(ctx context.Context, b journal.Batch) error {
	if bar := j.bar.Load(); bar != nil {
		<-*bar
	}
	return j.Journal.Append(ctx, b)
}

func (j *crossed) Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error) {
	r, err := j.Journal.Read(ctx, conversation, after, limit)
	if after == 0 && limit == 0 {
		if fn := j.read.Swap(nil); fn != nil {
			(*fn)()
		}
	}
	return r, err
}

func TestAMessageThatSteersReachesTheAgentThoughItsSenderIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newCrossed()
		more := make(chan string, 1)
		h := newTestGateway(t, j, one(steered{
			func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text("got " + <-more) },
			func(m agent.Message) error { more <- m.Text; return nil },
		}), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.send(c, "go").Turn
		synctest.Wait()
		open := j.hold()
		ctx, leave := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, err := h.Do(ctx, admin, c, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "left"}})
			answer <- err
		}()
		synctest.Wait() // the commit waits
		leave()
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("the sender who left got %v", err)
		}
		open()
		h.ended(c, turn)
		wantTexts(t, h.view(c), "user: go", "user: left", "assistant: got left")
	})
}

func TestTruncatesThatCrossDropNothingThatBothWouldKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newCrossed()
		h := newTestGateway(t, j, one(agentFunc(echo)), nil)
		defer h.close()
		c := h.create(admin)
		h.ended(c, h.send(c, "one").Turn)
		h.ended(c, h.send(c, "two").Turn)
		synctest.Wait()
		m := h.view(c).Messages
		first, later := m[1].ID, m[2].ID
		other := func() { h.do(c, gateway.Command{Type: gateway.CommandTruncate, After: first}) }
		j.read.Store(&other) // after this one has read the log
		_, err := h.Do(t.Context(), admin, c, gateway.Command{Type: gateway.CommandTruncate, After: later})
		var r *gateway.Rejection
		if !errors.As(err, &r) || r.Reason != gateway.ReasonUnknown {
			t.Errorf("a truncate after a message that is gone: %v", err)
		}
		wantTexts(t, h.view(c), "user: one", "assistant: re: one")
	})
}

func TestARepeatedTruncateIsToldItsOutcomeThoughItsMessageIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(echo)), nil)
		defer h.close()
		c := h.create(admin)
		h.ended(c, h.send(c, "one").Turn)
		h.ended(c, h.send(c, "two").Turn)
		synctest.Wait()
		m := h.view(c).Messages
		cut := gateway.Command{Type: gateway.CommandTruncate, Key: "k", After: m[2].ID}
		ack := h.do(c, cut)
		h.do(c, gateway.Command{Type: gateway.CommandTruncate, After: m[0].ID})
		if again := h.do(c, cut); !again.Repeated || again.Seq != ack.Seq || again.Deleted != 1 {
			t.Errorf("first %+v, again %+v", ack, again)
		}
		wantTexts(t, h.view(c), "user: one")
	})
}

func TestTwoCreatesOfOneKeyAtTheSameTimeMakeOneConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newCrossed()
		h := newTestGateway(t, j, nil, nil)
		defer h.close()
		open := j.hold()
		type made struct {
			id      string
			created bool
			err     error
		}
		all := make(chan made, 2)
		for range 2 {
			go func() {
				s, created, err := h.Create(t.Context(), alice, gateway.CreateOptions{Key: "k", Title: "T"})
				all <- made{s.ID, created, err}
			}()
		}
		synctest.Wait() // both have found no key, or one waits for the other
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, _, err := h.Create(ctx, alice, gateway.CreateOptions{Key: "k", Title: "T"}); !errors.Is(err, context.Canceled) {
			t.Errorf("who left while it waited got %v", err)
		}
		open()
		a, b := <-all, <-all
		if a.err != nil || b.err != nil || a.id != b.id || a.created == b.created {
			t.Errorf("%+v, %+v", a, b)
		}
	})
}

func TestATurnThatWasLookedUpDoesNotChangeBehindItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			_, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestApproval})
			return err
		})), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.send(c, "go").Turn
		h.until(c, func(tr *transcript.Transcript) bool {
			t := tr.Turn(turn)
			return t != nil && len(t.Requests) == 1
		})
		_, found, err := h.Turn(t.Context(), admin, gateway.ActionRead, turn)
		if err != nil {
			t.Fatal(err)
		}
		h.do(c, gateway.Command{Type: gateway.CommandAnswer, Turn: turn, Request: "q", Decision: event.Approve})
		h.ended(c, turn)
		if len(found.Requests) != 1 || found.Requests[0] == nil || found.Requests[0].ID != "q" {
			t.Errorf("the turn that was looked up has now the requests %v", found.Requests)
		}
	})
}

// fillsUp is a journal whose disk is full as soon as a delete begins.
type fillsUp struct {
	journal.Journal
	full, was atomic.Bool
}

func (j *fillsUp) Append(ctx context.Context, b journal.Batch) error {
	if j.full.Load() {
		return journal.ErrFull
	}
	last := len(b.Events) - 1
	if last >= 0 && b.Events[last].Type == event.ConversationDelete && !j.was.Swap(true) {
		defer j.full.Store(true)
	}
	return j.Journal.Append(ctx, b)
}

func (j *fillsUp) Delete(ctx context.Context, conversation string) error {
	if j.full.Load() {
		return journal.ErrFull
	}
	return j.Journal.Delete(ctx, conversation)
}

func (j *fillsUp) Healthy() error {
	if j.full.Load() {
		return journal.ErrFull
	}
	return j.Journal.Healthy()
}

func TestADeleteThatTheDiskCutOffIsFinishedOnceItCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &fillsUp{Journal: memory.New()}
		h := newTestGateway(t, j, one(agentFunc(echo)), nil)
		defer h.close()
		c, other := h.create(alice), h.create(alice)
		h.ended(c, h.send(c, "secret").Turn)
		if _, err := h.Do(t.Context(), alice, c, gateway.Command{Type: gateway.CommandDelete}); !errors.Is(err, gateway.ErrUnavailable) {
			t.Errorf("delete: %v", err)
		}
		time.Sleep(time.Minute)
		if list, err := h.List(t.Context(), alice, nil, 0); err != nil || len(list) != 1 || list[0].ID != other {
			t.Errorf("the list has %v, %v", list, err)
		}
		j.full.Store(false)
		time.Sleep(time.Minute)
		if _, err := j.Conversation(t.Context(), c); !errors.Is(err, journal.ErrDeleted) {
			t.Errorf("it is stored still: %v", err)
		}
	})
}
