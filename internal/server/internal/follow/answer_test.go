package follow_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/demo"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/answer/answertest"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/transcript"
)

var admin = gateway.Principal{Admin: true}

// slow is a journal that returns few events at once, unless it is asked for all.
type slow struct{ journal.Journal }

func (j slow) Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error) {
	r, err := j.Journal.Read(ctx, conversation, after, limit)
	if limit > 0 && len(r.Events) > 3 {
		r.Events, r.HasMore = r.Events[:3], true
	}
	return r, err
}

// untraced is a journal whose traces have expired.
type untraced struct{ journal.Journal }

func (untraced) Trace(context.Context, string, string) (journal.Trace, error) {
	return journal.Trace{}, journal.ErrNotFound
}

// start starts a gateway with an agent on a journal. It is stopped at the end of the test, or by stop.
func start(t *testing.T, j journal.Journal, a agent.Agent) (gw *gateway.Gateway, stop func()) {
	t.Helper()
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"eliza": {Agent: a}}, Dialects: all.Registry(), DefaultAgent: "eliza",
		Settings: gateway.Settings{Drain: time.Millisecond},
	})
	if err == nil {
		err = gw.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	isStopped := false
	stop = func() {
		if isStopped {
			return
		}
		isStopped = true
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return gw, stop
}

// read reads an answer for a client that has c, and returns the state after each operation, c first. It approves what the agent asks.
func read(t *testing.T, gw *gateway.Gateway, conversation, turn string, c *answertest.Client) []*answertest.Client {
	t.Helper()
	states := []*answertest.Client{c}
	err := follow.Answer{Op: func(_ *answer.Answer, op *answer.Op) error {
		if op.IsReceived {
			return nil
		}
		next := states[len(states)-1].Clone()
		if err := next.Apply(op); err != nil {
			return err
		}
		states = append(states, next)
		if op.Type == event.TurnWait && c.Number < 0 {
			_, err := gw.Do(t.Context(), admin, conversation, gateway.Command{
				Type: gateway.CommandAnswer, Turn: turn, Key: "answer", Request: op.Body.Request.ID, Decision: event.Approve,
			})
			return err
		}
		return nil
	}}.Follow(t.Context(), gw, admin, conversation, turn, c.Number)
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// An answer of a real agent is read live, after the log was compacted, and after a restart. Each time clients resume after
// numbers that the live reading had.
func TestAnswer(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) journal.Journal{
		"memory":   func(*testing.T) journal.Journal { return memory.New() },
		"slow":     func(*testing.T) journal.Journal { return slow{memory.New()} },
		"untraced": func(*testing.T) journal.Journal { return untraced{slow{memory.New()}} },
		"sqlite": func(t *testing.T) journal.Journal {
			j, err := sqlite.Open(sqlite.Options{Dir: t.TempDir(), Sync: sqlite.Normal, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return j
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			t.Cleanup(func() {
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			})
			gw, stop := start(t, j, demo.New(demo.Config{}))
			c, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			live := map[string][]*answertest.Client{} // by turn
			for _, text := range []string{"help", "status", "tools", "ask", "long 200", "error"} {
				turn := send(t, gw, c.ID, text)
				live[turn] = read(t, gw, c.ID, turn, answertest.New())
				check(t, gw, c.ID, turn, live[turn], false)
			}
			compact(t, gw, c.ID) // the tail of the feed still has the original events
			for turn, states := range live {
				check(t, gw, c.ID, turn, states, false)
			}
			// Only the compacted log has the events.
			stop()
			gw, _ = start(t, j, demo.New(demo.Config{}))
			for turn, states := range live {
				check(t, gw, c.ID, turn, states, name == "untraced")
			}
		})
	}
}

// send sends a message and returns the turn that answers it.
func send(t *testing.T, gw *gateway.Gateway, conversation, text string) string {
	t.Helper()
	ack, err := gw.Do(t.Context(), admin, conversation, gateway.Command{Type: gateway.CommandSend, Key: text, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	return ack.Turn
}

// compact compacts the log of a conversation.
func compact(t *testing.T, gw *gateway.Gateway, conversation string) {
	t.Helper()
	_, release, err := gw.PauseCompaction(t.Context(), admin, conversation)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// parallel is an agent whose answer has two texts that grow by turns, in more events than a feed keeps of a compacted log.
type parallel struct{}

func (parallel) Run(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	ops := []event.Event{{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}}}
	for _, p := range []string{"a", "b"} {
		ops = append(ops, event.Event{Type: event.PartStart, Message: "m", Part: p, Body: &event.Body{Kind: event.KindText}})
	}
	for range 3000 {
		for _, p := range []string{"a", "b"} {
			ops = append(ops, event.Event{Type: event.PartAppend, Message: "m", Part: p, Text: "."})
		}
	}
	return out.Emit(ops, nil)
}

// The first events of a long answer are in the compacted log only, and the last ones also in memory.
func TestLongAnswer(t *testing.T) {
	j := slow{memory.New()}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	gw, _ := start(t, j, parallel{})
	c, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	turn := send(t, gw, c.ID, "hi")
	live := read(t, gw, c.ID, turn, answertest.New())
	if final := live[len(live)-1]; final.Needless > 0 || final.Number < 6000 {
		t.Fatalf("%d replaces, %d events", final.Needless, final.Number)
	}
	compact(t, gw, c.ID)
	check(t, gw, c.ID, turn, append(live[:4:4], live[len(live)/2], live[len(live)-10], live[len(live)-1]), false)
}

// A turn that a truncate has removed has no answer, whether its events are still in memory or not.
func TestRemovedTurn(t *testing.T) {
	j := memory.New()
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	gw, stop := start(t, j, demo.New(demo.Config{}))
	c, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	turn := send(t, gw, c.ID, "status")
	read(t, gw, c.ID, turn, answertest.New())
	if _, err := gw.Do(t.Context(), admin, c.ID, gateway.Command{Type: gateway.CommandTruncate}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := follow.Answer{Op: func(*answer.Answer, *answer.Op) error { return nil }}.Follow(t.Context(), gw, admin, c.ID, turn, -1)
		if !errors.Is(err, follow.ErrNoTurn) {
			t.Errorf("error %v", err)
		}
		compact(t, gw, c.ID)
		stop()
		gw, stop = start(t, j, demo.New(demo.Config{}))
	}
}

// check reads an answer again, from its beginning and after many of the states of another reading, and compares it with the transcript. Unless
// isMerged, each operation is in both readings.
func check(t *testing.T, gw *gateway.Gateway, conversation, turn string, states []*answertest.Client, isMerged bool) {
	t.Helper()
	byNumber := map[int64]*answertest.Client{}
	for _, c := range states {
		byNumber[c.Number] = c
	}
	final := states[len(states)-1]
	if final.Outcome == "" {
		t.Fatal("the answer has no outcome")
	}
	for i := 0; i < len(states); i += 1 + len(states)/15 {
		c := states[i]
		again := read(t, gw, conversation, turn, c)
		if got := again[len(again)-1]; got.String() != final.String() {
			t.Fatalf("after %d:\n%s\nwant\n%s", c.Number, got, final)
		}
		for _, got := range again {
			if want := byNumber[got.Number]; !isMerged && want != nil && (!maps.Equal(got.Texts, want.Texts) || got.Needless != want.Needless) {
				t.Fatalf("after %d, resumed after %d:\n%s\nwant\n%s", got.Number, c.Number, got, want)
			}
		}
	}
	texts := 0
	err := gw.ViewTranscript(t.Context(), admin, conversation, func(all *transcript.Transcript) bool {
		texts = 0
		for _, m := range all.Messages {
			for _, p := range m.Parts {
				for _, f := range transcript.Fields {
					if m.Turn != turn || p.Len(f) == 0 {
						continue
					}
					texts++
					if got := final.Texts[m.ID+"/"+p.ID+"."+f.Name()]; got != p.Text(f) {
						t.Errorf("%q, and the transcript has %q", got, p.Text(f))
					}
				}
			}
		}
		return texts > 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts != len(final.Texts) || texts == 0 {
		t.Errorf("%d texts, and the transcript has %d", len(final.Texts), texts)
	}
}
