package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/store/files"
)

// listener is an agent that reports calls of Follow, and fails them while the test wants that.
type listener struct {
	agenttest.Follower
	events chan string
	fails  error
}

func (l *listener) Follow(ctx context.Context, _ agent.Sessions) error {
	l.events <- "begins"
	if l.fails != nil {
		return l.fails
	}
	<-ctx.Done()
	l.events <- "ends"
	return ctx.Err()
}

// Each agent is followed once, from the moment when both it and the gateway have started until either ends. If it is replaced, the new one
// is followed.
func TestFollowAgentsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := gateway.NewRoster(slog.New(slog.DiscardHandler))
		one, two := &listener{events: make(chan string, 10)}, &listener{events: make(chan string, 10)}
		wants := func(l *listener, want ...string) {
			t.Helper()
			synctest.Wait()
			for _, w := range want {
				select {
				case got := <-l.events:
					if got != w {
						t.Errorf("it %s, want it %s", got, w)
					}
				default:
					t.Errorf("nothing, want it %s", w)
				}
			}
			if len(l.events) > 0 {
				t.Errorf("it %s", <-l.events)
			}
		}
		if err := r.Add("x", gateway.Agent{Agent: one}); err != nil {
			t.Fatal(err)
		}
		h := newTestGateway(t, nil, nil, func(c *gateway.Config) { c.Agents = r })
		wants(one)
		r.Start()
		wants(one, "begins")
		if err := r.Replace("x", gateway.Agent{Agent: two}); err != nil {
			t.Fatal(err)
		}
		wants(one, "ends")
		wants(two, "begins")
		r.Remove("x")
		if len(two.events) != 1 {
			t.Error("Remove has not waited for the end of Follow")
		}
		wants(two, "ends")
		if err := r.Add("y", gateway.Agent{Agent: one}); err != nil {
			t.Fatal(err)
		}
		wants(one, "begins")
		h.close()
		wants(one, "ends")
		if err := r.Add("z", gateway.Agent{Agent: two}); err != nil {
			t.Fatal(err)
		}
		wants(two)
		r.Close()
	})
}

// A Follow that fails is retried after pauses of growing length, and each failure is logged.
func TestFollowFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := &listener{events: make(chan string, 100), fails: errors.New("no route")}
		h := newTestGateway(t, nil, one(l), func(c *gateway.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		for i, after := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
			time.Sleep(after)
			synctest.Wait()
			if len(l.events) != i+1 {
				t.Errorf("after %v: followed %d times, want %d", after, len(l.events), i+1)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(l.events); n < 15 || n > 22 {
			t.Errorf("followed %d times in an hour", n)
		}
		h.close()
		if n := strings.Count(log.String(), "no route"); n != len(l.events) {
			t.Errorf("logged %d times, followed %d times", n, len(l.events))
		}
	})
}

// Entries have limits: too long keys and cursors are refused, and messages are cut.
func TestAddBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions := make(chan agent.Sessions, 1)
		up := &bare{given: sessions}
		h := newTestGateway(t, nil, one(up), func(c *gateway.Config) { c.MaxMessage = 10 })
		defer h.close()
		conv := h.create(alice)
		s := <-sessions
		add := func(cursor string, entries ...agent.Entry) error {
			return s.Add(t.Context(), conv, entries, json.RawMessage(cursor))
		}
		said := func(key, text string) agent.Entry { return agenttest.MessageEntry(key, "tui", text, time.Time{}) }
		if err := add("1", said("m", "x")); !errors.Is(err, agent.ErrNoSession) {
			t.Errorf("without a session: %v", err)
		}
		if err := s.Add(t.Context(), "nobody", []agent.Entry{said("m", "x")}, nil); !errors.Is(err, agent.ErrNoSession) {
			t.Errorf("without a conversation: %v", err)
		}
		h.ended(conv, h.send(conv, "hello").Turn)
		for name, err := range map[string]error{
			"key too long":   add("1", said("ok", "x"), said(strings.Repeat("k", agent.MaxKey+1), "x")),
			"no key":         add("1", said("", "x")),
			"neither":        add("1", agent.Entry{Key: "k"}),
			"both":           add("1", agent.Entry{Key: "k", Message: &agent.Message{}, Run: &agent.Run{}}),
			"role":           add("1", agent.Entry{Key: "k", Message: &agent.Message{Role: "robot", Text: "x"}}),
			"no JSON":        add("{"),
			"cursor too big": add(`"` + strings.Repeat("x", agent.MaxCursor) + `"`),
		} {
			if !errors.Is(err, event.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantTexts(t, h.view(conv), "user: hello", "assistant: hello")
		empty := agent.Entry{Key: "empty", Message: &agent.Message{Role: event.User}}
		if err := add("1", said(strings.Repeat("k", agent.MaxKey), "0123456789"), said("cut", "01234567ää"), empty, empty); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, h.view(conv), "user: hello", "assistant: hello", "user: 0123456789",
			"user: 01234567ä\n\n[The message has 12 bytes. Only the first 10 are stored here.]")
		// A run with an invalid operation fails, as a live one does, and one without an end fails as cut short.
		bad := over("bad", "", "x")
		bad.Run.Ops = bad.Run.Ops[1:]
		short := over("short", "", "short")
		short.Run.Ops = short.Run.Ops[:3]
		if err := add("2", bad, short); err != nil {
			t.Fatal(err)
		}
		tr := h.view(conv)
		wantOutcome(t, turnOf(t, tr, "short"), event.Failed, "cut_short")
		wantOutcome(t, tr.Turns[1], event.Failed, "invalid_stream")

		// No entry can be added to a session that was deleted, and Next returns each change once.
		next := func() agent.Session {
			t.Helper()
			one, err := s.Next(t.Context())
			if err != nil || one.Conversation != conv {
				t.Fatalf("next %+v, %v", one, err)
			}
			return one
		}
		if one := next(); string(one.Session) != `"`+conv+`"` || string(one.Cursor) != "2" || one.Principal.Subject != "alice" {
			t.Errorf("kept: %+v", one)
		}
		h.do(conv, gateway.Command{Type: gateway.CommandTruncate})
		if one := next(); one.Session != nil || one.Cursor != nil {
			t.Errorf("dropped: %+v", one)
		}
		if err := add("3", said("late", "x")); !errors.Is(err, agent.ErrNoSession) {
			t.Errorf("after a truncate: %v", err)
		}
		h.ended(conv, h.send(conv, "again").Turn)
		if one := next(); one.Session == nil || one.Cursor != nil {
			t.Errorf("kept again: %+v", one)
		}
		h.do(conv, gateway.Command{Type: gateway.CommandDelete})
		if one := next(); one.Session != nil {
			t.Errorf("deleted: %+v", one)
		}
		if err := add("4", said("late", "x")); !errors.Is(err, agent.ErrNoSession) {
			t.Errorf("after a delete: %v", err)
		}
		if all, err := s.List(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("all: %+v, %v", all, err)
		}
	})
}

// bare passes its sessions to the test.
type bare struct {
	agenttest.Follower
	given chan agent.Sessions
}

func (b *bare) Follow(_ context.Context, s agent.Sessions) error {
	b.given <- s
	return nil
}

// Pictures from another client are stored like those of turns, and the ledger charges each run to the owner.
func TestAddFilesAndUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, err := files.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		up := &agenttest.Follower{}
		h, conv := following(t, nil, up, func(c *gateway.Config) {
			c.Attachments = attachments.NewStore(attachments.Config{Journal: c.Journal, Files: dir})
		})
		defer h.close()
		release := make(chan struct{})
		up.SetRun("live", holding("live", release))
		run := over("r", "", "with a picture")
		picture := &event.Media{URL: "data:image/png;base64,iVBORw0KGgo=", MIME: "image/png"}
		run.Run.Ops = append(run.Run.Ops[:3:3], event.Event{Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindMedia, Media: picture}}, run.Run.Ops[3])
		message := agent.Entry{Key: "m", Message: &agent.Message{Role: event.User, Text: "look", Parts: []event.Part{{Kind: event.KindMedia, Media: picture}}}}
		up.AddEntries(conv, message, run, live("live", "m", ""))
		synctest.Wait()
		close(release)
		synctest.Wait()
		n := 0
		for _, m := range h.view(conv).Messages {
			for _, p := range m.Parts {
				if p.Media != nil {
					if n++; !strings.Contains(p.Media.URL, "/files/") {
						t.Errorf("media %+v", p.Media)
					}
				}
			}
		}
		if n != 2 {
			t.Errorf("%d pictures, want 2", n)
		}
		day := time.Now().UTC().Format(time.DateOnly)
		rep, err := h.Usage(t.Context(), admin, usage.Query{From: day, To: day, GroupBy: []usage.Dimension{usage.BySubject}})
		if err != nil || len(rep.Groups) != 1 || rep.Groups[0].Subject != "alice" || rep.Total.Turns != 3 {
			t.Errorf("usage %+v, %v", rep, err)
		}
	})
}

// Operations without effect are counted and logged.
func TestDroppedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		run := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			ops := over("", "", "text").Run.Ops
			again := append(ops[:3:3], event.Event{Type: event.PartEnd, Message: "m", Part: "t"}, ops[2])
			return out.Emit(append(again, ops[3], ops[3]), nil)
		})
		h, metric := measured(t, run, func(c *gateway.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		conv := h.create(alice)
		h.ended(conv, h.send(conv, "hello").Turn)
		synctest.Wait()
		h.close()
		if got := metric(`leat_dropped_operations_total{agent="a"}`); got != "2" {
			t.Errorf("counted %s, want 2", got)
		}
		if !strings.Contains(log.String(), "operations of the turn were dropped") || !strings.Contains(log.String(), "without_effect=2") {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

// Observed turns don't count for the quota of turns, and their bytes are captured like those of other turns.
func TestObservedQuotaAndRaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, err := capture.Open(capture.Options{Dir: t.TempDir(), Retention: capture.DefaultRetention, Size: capture.DefaultSize})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := raw.Close(); err != nil {
				t.Error(err)
			}
		}()
		up := &agenttest.Follower{}
		h, conv := following(t, nil, up, func(c *gateway.Config) {
			c.User, c.Raw = quota.Limits{Turns: 1}, raw
		})
		defer h.close()
		release := make(chan struct{})
		for _, key := range []string{"r1", "r2"} {
			up.SetRun(key, func(ctx context.Context, _ agent.Input, _ json.RawMessage, out *agent.Emitter) error {
				out.Body("leat")
				out.CaptureReceived([]byte("bytes of the run\n"))
				return holding(key, release)(ctx, agent.Input{}, nil, out)
			})
			up.AddEntries(conv, live(key, "", ""))
		}
		synctest.Wait()
		ack, err := h.Do(t.Context(), alice, conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "mine"}})
		if err != nil {
			t.Fatalf("refused beside observed turns: %v", err)
		}
		wantOutcome(t, h.ended(conv, ack.Turn), event.Completed, "")
		turn := turnOf(t, h.view(conv), "r1").ID
		close(release)
		wantOutcome(t, h.ended(conv, turn), event.Completed, "")
		synctest.Wait()
		var b bytes.Buffer
		if err := h.WriteRecording(t.Context(), admin, turn, &b); err != nil || !strings.Contains(b.String(), "bytes of the run") {
			t.Errorf("recording %q, %v", b.String(), err)
		}
	})
}
