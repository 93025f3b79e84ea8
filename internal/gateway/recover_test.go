package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// kill makes the gateway stop writing like a killed process, and returns its journal.
func (h *testGateway) kill() journal.Journal {
	h.journal.fail(journal.ErrClosed)
	return h.journal.Journal
}

// hang writes a little text and then nothing more.
func hang(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	if err := out.Text("begun"); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// counter writes the numbers from 1 to n, one per second. It can be resumed.
type counter struct{ n int }

func (c counter) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return c.Resume(ctx, in, nil, out)
}

func (c counter) Resume(ctx context.Context, _ agent.Input, state json.RawMessage, out *agent.Emitter) error {
	said := 0
	if state != nil {
		if err := json.Unmarshal(state, &said); err != nil {
			return err
		}
	}
	for said < c.n {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		said++
		ops := []event.Event{
			{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
			{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindText}},
			{Type: event.PartAppend, Message: "m", Part: "t", Text: fmt.Sprint(said, " ")},
		}
		if said > 1 {
			ops = ops[2:]
		}
		if err := out.Emit(ops, json.RawMessage(fmt.Sprint(said))); err != nil {
			return err
		}
	}
	return nil
}

func TestAKilledGatewayEndsOrResumesItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := gateway.Agents{"a": {Agent: agentFunc(hang)}, "count": {Agent: counter{10}}}
		h := newTestGateway(t, nil, agents, nil)
		lost, resumed := h.create(admin), h.create(admin)
		lostTurn := h.send(lost, "go").Turn
		synctest.Wait()
		queued := h.do(lost, gateway.Command{Type: gateway.CommandSend, Agent: "count", Message: &gateway.CommandMessage{Text: "then"}}).Turn
		count := h.do(resumed, gateway.Command{Type: gateway.CommandSend, Agent: "count", Message: &gateway.CommandMessage{Text: "go"}}).Turn
		time.Sleep(4500 * time.Millisecond)
		disk := h.kill()
		time.Sleep(time.Minute)

		h2 := newTestGateway(t, disk, agents, nil)
		defer h2.close()
		wantOutcome(t, h2.ended(lost, lostTurn), event.Interrupted, "gateway_restart")
		wantOutcome(t, h2.ended(resumed, count), event.Completed, "")
		wantOutcome(t, h2.ended(lost, queued), event.Completed, "")
		wantTexts(t, h2.view(resumed), "user: go", "assistant: 1 2 3 4 5 6 7 8 9 10 ")
		wantTexts(t, h2.view(lost), "user: go", "assistant: begun", "user: then", "assistant: 1 2 3 4 5 6 7 8 9 10 ")
		h.close()
	})
}

func TestShutdownDrainsThenDetaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := gateway.Agents{"a": {Agent: agentFunc(hang)}, "count": {Agent: counter{60}}, "short": {Agent: counter{5}}}
		h := newTestGateway(t, nil, agents, nil)
		convs, turns := map[string]string{}, map[string]string{}
		for name := range agents {
			convs[name] = h.create(admin)
			turns[name] = h.do(convs[name], gateway.Command{Type: gateway.CommandSend, Agent: name, Message: &gateway.CommandMessage{Text: "go"}}).Turn
		}
		queued := h.send(convs["a"], "later").Turn
		time.Sleep(1500 * time.Millisecond)
		closed := make(chan struct{})
		begin := time.Now()
		go func() { h.close(); close(closed) }()
		synctest.Wait()
		h.refused(convs["a"], gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "x"}}, gateway.ReasonDraining)
		<-closed
		if d := time.Since(begin); d > gateway.DefaultDrain+time.Second {
			t.Errorf("shutdown took %v", d)
		}
		wantOutcome(t, h.view(convs["short"]).Turn(turns["short"]), event.Completed, "")
		wantOutcome(t, h.view(convs["a"]).Turn(turns["a"]), event.Interrupted, "gateway_restart")
		if s := h.view(convs["count"]).Turn(turns["count"]).State; s != transcript.TurnRunning {
			t.Errorf("the resumable turn is %s", s)
		}
		if s := h.view(convs["a"]).Turn(queued).State; s != transcript.TurnQueued {
			t.Errorf("the queued turn is %s", s)
		}

		h2 := newTestGateway(t, h.journal.Journal, agents, nil)
		h2.ended(convs["count"], turns["count"])
		want := ""
		for i := range 60 {
			want += fmt.Sprint(i+1, " ")
		}
		wantTexts(t, h2.view(convs["count"]), "user: go", "assistant: "+want)
		h2.until(convs["a"], func(t *transcript.Transcript) bool { return t.Turn(queued).State == transcript.TurnRunning })
		h2.close()
	})
}

// tied is a counter whose upstream stops when the gateway disconnects.
type tied struct{ counter }

func (tied) NeedsDrain() bool { return true }

func TestShutdownWaitsForWhatEndsWhenItIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := gateway.Agents{"a": {Agent: tied{counter{5}}}, "long": {Agent: tied{counter{60}}}}
		h := newTestGateway(t, nil, agents, nil)
		short, long := h.create(admin), h.create(admin)
		shortTurn := h.send(short, "go").Turn
		longTurn := h.do(long, gateway.Command{Type: gateway.CommandSend, Agent: "long", Message: &gateway.CommandMessage{Text: "go"}}).Turn
		time.Sleep(1500 * time.Millisecond)
		h.close()
		wantOutcome(t, h.view(short).Turn(shortTurn), event.Completed, "")
		if s := h.view(long).Turn(longTurn).State; s != transcript.TurnRunning {
			t.Errorf("after the drain time the turn is %s, and can't be resumed", s)
		}
	})
}

func TestAFullDiskHoldsTextBackAndLosesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(counter{20}), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.send(c, "go").Turn
		time.Sleep(2500 * time.Millisecond)
		h.journal.fail(journal.ErrFull)
		time.Sleep(5 * time.Second)
		if got := h.view(c).Messages[1].Visible(); got != "1 2 " {
			t.Errorf("shown while the disk is full: %q", got)
		}
		if _, err := h.Do(t.Context(), admin, c, gateway.Command{Type: gateway.CommandStop, Turn: turn}); !errors.Is(err, gateway.ErrUnavailable) {
			t.Errorf("a command meanwhile: %v", err)
		}
		if h.Healthy() == nil {
			t.Error("healthy")
		}
		h.journal.fail(nil)
		wantOutcome(t, h.ended(c, turn), event.Completed, "")
		if got := h.view(c).Messages[1].Visible(); !strings.HasPrefix(got, "1 2 3 4 5 6 ") || !strings.HasSuffix(got, " 19 20 ") {
			t.Errorf("text %q", got)
		}
	})
}

func TestADiskFullForLongInterruptsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			for ctx.Err() == nil {
				if err := out.Text("x"); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return ctx.Err()
		})), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.send(c, "go").Turn
		time.Sleep(2500 * time.Millisecond)
		h.journal.fail(journal.ErrFull)
		time.Sleep(40 * time.Second)
		h.journal.fail(nil)
		time.Sleep(3 * time.Second)
		wantOutcome(t, h.view(c).Turn(turn), event.Interrupted, "gateway_restart")
		wantTexts(t, h.view(c), "user: go", "assistant: xxx")
	})
}

func TestOfTwoGatewaysOnOneJournalTheLoserGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		h1 := newTestGateway(t, j, one(counter{100}), nil)
		defer h1.close()
		c := h1.create(admin)
		turn := h1.send(c, "go").Turn
		time.Sleep(2500 * time.Millisecond)
		head := h1.view(c).Seq
		// Another gateway takes over the conversation.
		err := j.Append(t.Context(), journal.Batch{Conversation: c, Expected: head, Events: []event.Event{{Seq: head + 1, Type: event.TurnUpdate, Turn: turn, Body: &event.Body{Phase: "theirs"}}}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond) // it writes its next number, which is refused
		if got := h1.view(c); got.Seq != head+1 || got.Turn(turn).Phase != "theirs" {
			t.Errorf("the loser wrote up to %d, head was %d", got.Seq, head+1)
		}
		// It reads the log again and continues after the other gateway's events.
		wantOutcome(t, h1.ended(c, turn), event.Completed, "")
	})
}

func (h *testGateway) push(conv string) *push.Producer {
	h.t.Helper()
	pr, _, err := h.Push(h.t.Context(), admin, conv, push.Options{Dialect: "eliza-actions"})
	if err != nil {
		h.t.Fatal(err)
	}
	return pr
}

const pushed = `{"type":"chunk","text":"Hel"}
{"type":"chunk","text":"lo 👋"}
{"type":"callback","text":"🔍 Looking…","source":"x"}
{"type":"chunk","text":"and more"}
{"type":"done"}
`

func TestAPushedTurnGoesOnAtAnyByte(t *testing.T) {
	const want = "assistant: Hello 👋\n\n🔍 Looking…\n\nand more"
	for cut := range len(pushed) {
		synctest.Test(t, func(t *testing.T) {
			h := newTestGateway(t, nil, nil, nil)
			c := h.create(admin)
			pr := h.push(c)
			if err := pr.Write(t.Context(), []byte(pushed[:cut])); err != nil {
				t.Fatal(cut, err)
			}
			if err := pr.Close(false); err != nil {
				t.Fatal(cut, err)
			}
			turn := pr.Turn
			switch cut % 3 {
			case 1: // the producer reconnects in time
				time.Sleep(20 * time.Second)
			case 2: // the gateway is killed meanwhile
				synctest.Wait()
				disk := h.kill()
				defer h.close()
				h = newTestGateway(t, disk, nil, nil)
				time.Sleep(20 * time.Second)
			}
			defer h.close()
			progress, err := h.Progress(t.Context(), admin, turn)
			if err != nil || progress.IsEnded || progress.Offset > int64(cut) {
				t.Fatal(cut, progress.Offset, progress.IsEnded, err)
			}
			pr, err = h.Attach(t.Context(), admin, turn)
			if err != nil {
				t.Fatal(cut, err)
			}
			at := pr.Offset()
			if at != progress.Offset {
				t.Fatal(cut, at, progress.Offset)
			}
			if err := pr.Write(t.Context(), []byte(pushed[at:])); err != nil {
				t.Fatal(cut, err)
			}
			if err := pr.Close(true); err != nil {
				t.Fatal(cut, err)
			}
			wantOutcome(t, h.ended(c, turn), event.Completed, "")
			wantTexts(t, h.view(c), want)
			progress, err = h.Progress(t.Context(), admin, turn)
			if err != nil || !progress.IsEnded || progress.Offset != int64(len(pushed)) {
				t.Error("after the end:", progress.Offset, progress.IsEnded, err)
			}
		})
	}
}

func TestAProducerThatStaysAwayLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, nil, nil)
		defer h.close()
		c := h.create(admin)
		first := h.push(c)
		queued := h.push(c)
		if err := first.Write(t.Context(), []byte(pushed[:40])); err != nil {
			t.Fatal(err)
		}
		_ = queued.Close(false)
		time.Sleep(time.Hour) // an attached producer may be silent
		wantOutcome(t, h.view(c).Turn(queued.Turn), event.Failed, "lease_expired")
		if s := h.view(c).Turn(first.Turn).State; s != transcript.TurnRunning {
			t.Errorf("the attached turn is %s", s)
		}
		// A lost connection is no end, and neither is the end of a body before the dialect's own end.
		if err := first.Close(true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		if s := h.view(c).Turn(first.Turn).State; s != transcript.TurnRunning {
			t.Errorf("within its lease the turn is %s", s)
		}
		time.Sleep(2 * time.Second)
		wantOutcome(t, h.view(c).Turn(first.Turn), event.Failed, "lease_expired")
		wantTexts(t, h.view(c), "assistant: Hel")
		if _, err := h.Attach(t.Context(), admin, first.Turn); !errors.Is(err, gateway.ErrTurnOver) {
			t.Errorf("attach to the ended turn: %v", err)
		}
	})
}

func TestANewConnectionTakesThePushOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, nil, nil)
		defer h.close()
		c := h.create(admin)
		old := h.push(c)
		if err := old.Write(t.Context(), []byte(pushed[:35])); err != nil { // half a line is sent
			t.Fatal(err)
		}
		pr, err := h.Attach(t.Context(), admin, old.Turn)
		if err != nil {
			t.Fatal(err)
		}
		if err := old.Write(t.Context(), []byte("x")); !errors.Is(err, gateway.ErrTurnOver) {
			t.Errorf("the old connection still writes: %v", err)
		}
		_ = old.Close(false)
		at, acks := pr.Offset(), pr.Acks()
		if err := pr.Write(t.Context(), []byte(pushed[at:])); err != nil {
			t.Fatal(err)
		}
		wantOutcome(t, h.ended(c, pr.Turn), event.Completed, "")
		synctest.Wait() // the acknowledgement follows what it acknowledges
		select {
		case a := <-acks:
			if a.Offset != int64(len(pushed)) || a.Seq == 0 {
				t.Errorf("ack %+v", a)
			}
		default:
			t.Error("no acknowledgement")
		}
	})
}

func TestABrokenPushFailsItsTurnWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, nil, nil)
		defer h.close()
		c := h.create(admin)
		if _, _, err := h.Push(t.Context(), admin, c, push.Options{Dialect: "klingon"}); err == nil || !strings.Contains(err.Error(), "klingon") {
			t.Errorf("unknown dialect: %v", err)
		}
		pr := h.push(c)
		err := pr.Write(t.Context(), []byte(pushed[:30]+"{broken\n"))
		var bad *dialect.Error
		if !errors.As(err, &bad) || bad.Frame != 2 {
			t.Errorf("broken JSON: %v", err)
		}
		wantOutcome(t, h.ended(c, pr.Turn), event.Failed, "invalid_stream")
		wantTexts(t, h.view(c), "assistant: Hel")
	})
}

// A stop doesn't wait for turns that the next start resumes, so an upgrade is short. While it waits for another turn, they continue.
func TestShutdownWaitsOnlyForWhatCannotResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			time.Sleep(5500 * time.Millisecond)
			return out.Text("done")
		})
		agents := gateway.Agents{"a": {Agent: slow}, "count": {Agent: counter{20}}}
		h := newTestGateway(t, nil, agents, nil)
		count := h.create(admin)
		turn := h.do(count, gateway.Command{Type: gateway.CommandSend, Agent: "count", Message: &gateway.CommandMessage{Text: "go"}}).Turn
		pr := h.push(h.create(admin))
		time.Sleep(1500 * time.Millisecond)
		begin := time.Now()
		h.close()
		if d := time.Since(begin); d != 0 {
			t.Errorf("with turns that can all be resumed it took %v", d)
		}
		select {
		case <-pr.Done():
		default:
			t.Error("the producer is not told")
		}
		if err := pr.Close(false); err != nil {
			t.Error(err)
		}

		h = newTestGateway(t, h.journal.Journal, agents, nil)
		other := h.create(admin)
		slowTurn := h.send(other, "go").Turn
		time.Sleep(500 * time.Millisecond)
		begin = time.Now()
		h.close()
		if d := time.Since(begin); d != 5*time.Second {
			t.Errorf("beside a turn of 5 s more it took %v", d)
		}
		wantOutcome(t, h.view(other).Turn(slowTurn), event.Completed, "")
		if s := h.view(count).Turn(turn).State; s != transcript.TurnRunning {
			t.Errorf("the resumable turn is %s", s)
		}
		wantTexts(t, h.view(count), "user: go", "assistant: 1 2 3 4 5 6 ")

		h = newTestGateway(t, h.journal.Journal, agents, nil)
		wantOutcome(t, h.ended(count, turn), event.Completed, "")
		h.close()
	})
}
