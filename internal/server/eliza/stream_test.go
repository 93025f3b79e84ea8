package eliza

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// stepwise is an agent that emits one text per step.
type stepwise struct {
	texts []string
	goOn  chan struct{}
	runs  atomic.Int32
}

func (s *stepwise) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	s.runs.Add(1)
	for _, text := range s.texts {
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := out.Text(text); err != nil {
			return err
		}
	}
	return nil
}

// withSteps runs a test with a stepwise agent. next makes it emit the next text and waits until all readers have it.
func withSteps(t *testing.T, texts []string, test func(h *harness, a *stepwise, next func())) {
	t.Helper()
	a := &stepwise{texts: texts}
	bubble(t, a, func(h *harness) {
		a.goOn = make(chan struct{})
		test(h, a, func() { a.goOn <- struct{}{}; synctest.Wait() })
	})
}

// The exact bytes of a stream.
func TestStreamBytes(t *testing.T) {
	withSteps(t, []string{"Hello", " <world>\n", ""}, func(h *harness, _ *stepwise, next func()) {
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "private, no-cache, no-store, no-transform", "X-Accel-Buffering": "no",
		} {
			if got := w.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		next()
		next()
		next()
		s := w.wait()
		list := h.messages(c)
		epoch, _, _ := strings.Cut(s.ids[0], ".")
		want := fmt.Sprintf(": heartbeat\n\n"+
			"id: %[1]s.4\n"+`data: {"type":"status","kind":"thinking"}`+"\n\n"+
			`data: {"type":"status","kind":"streaming"}`+"\n\n"+
			"id: %[1]s.7\n"+`data: {"type":"token","text":"Hello","fullText":"Hello"}`+"\n\n"+
			"id: %[1]s.8\n"+`data: {"type":"token","text":" <world>\n","fullText":"Hello <world>\n"}`+"\n\n"+
			"id: %[1]s.11\n"+`data: {"type":"done","fullText":"Hello <world>\n","agentName":"eliza","messageId":"%[2]s","userMessageId":"%[3]s","turn":"%[4]s"}`+"\n\n",
			epoch, list[1].ID, list[0].ID, list[1].Turn)
		if d := cmp.Diff(want, string(w.body)); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
}

func TestHeartbeats(t *testing.T) {
	a := agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		for i := range 3 {
			time.Sleep(4 * time.Second) // 4, 8 and 12 s: data does not delay a heartbeat
			if err := out.Text(fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	})
	bubble(t, a, func(h *harness) {
		c := h.create()
		start := time.Now()
		var beats []time.Duration
		w := &wire{}
		w.wrote = func() {
			if len(beats) < w.chat.beats {
				beats = append(beats, time.Since(start))
			}
		}
		h.open(w, "POST", at(c, "/messages/stream"), `{"text":"hi"}`).wait()
		if want := []time.Duration{0, 5 * time.Second, 10 * time.Second}; !slices.Equal(beats, want) {
			t.Errorf("heartbeats at %v, want %v", beats, want)
		}
	})
}

func TestAClientThatGoesAwayStopsNothing(t *testing.T) {
	withSteps(t, []string{"one", " two"}, func(h *harness, a *stepwise, next func()) {
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		next()
		w.cancel()
		s := w.wait()
		if s.done != nil || s.text != "one" {
			t.Fatalf("%+v %q", s.done, s.text)
		}
		next()
		wantTexts(t, h.messages(c), "user: hi", "assistant: one two")
		again := h.stream("GET", at(c, "/messages/stream"), "", "Last-Event-ID", s.ids[len(s.ids)-1]).wait()
		if again.done == nil || again.final() != "one two" || again.done.Outcome != "" || a.runs.Load() != 1 {
			t.Errorf("%+v after %d runs", again.done, a.runs.Load())
		}
	})
}

func TestAMessageSentTwiceRunsOnce(t *testing.T) {
	withSteps(t, []string{"one", " two"}, func(h *harness, a *stepwise, next func()) {
		c := h.create()
		body := `{"text":"hi","clientMessageId":"m-1"}`
		// At the same moment, in the middle, after the end, after a restart, and without a stream.
		first := h.stream("POST", at(c, "/messages/stream"), body)
		twin := h.stream("POST", at(c, "/messages/stream"), body)
		synctest.Wait()
		next()
		middle := h.stream("POST", at(c, "/messages/stream"), body)
		synctest.Wait()
		if s := middle.seen(); s.text != "one" {
			t.Errorf("joined in the middle: %q", s.text)
		}
		next()
		want := first.wait().done
		if want == nil || want.FullText != "one two" {
			t.Fatalf("%+v", want)
		}
		for name, w := range map[string]*wire{"twin": twin, "middle": middle, "after the end": h.stream("POST", at(c, "/messages/stream"), body)} {
			if d := cmp.Diff(want, w.wait().done, cmp.AllowUnexported(doneFrame{}, outcome{})); d != "" {
				t.Errorf("%s (-first +this)\n%s", name, d)
			}
		}
		h.stop()
		h.start()
		if d := cmp.Diff(want, h.stream("POST", at(c, "/messages/stream"), body).wait().done, cmp.AllowUnexported(doneFrame{}, outcome{})); d != "" {
			t.Errorf("after a restart (-first +this)\n%s", d)
		}
		var r reply
		h.do(200, &r, "POST", at(c, "/messages"), body)
		if r.Text != want.FullText || r.MessageID != want.MessageID || r.UserMessageID != want.UserMessageID {
			t.Errorf("without a stream: %+v", r)
		}
		if n := a.runs.Load(); n != 1 {
			t.Errorf("%d turns", n)
		}
		wantTexts(t, h.messages(c), "user: hi", "assistant: one two")
		h.refused(409, "another body", "POST", at(c, "/messages/stream"), `{"text":"other","clientMessageId":"m-1"}`)
		// A clientMessageId belongs to its conversation. In another conversation it is a new one.
		d := h.create()
		other := h.stream("POST", at(d, "/messages/stream"), body)
		synctest.Wait()
		next()
		next()
		if s := other.wait(); s.done == nil || a.runs.Load() != 2 {
			t.Errorf("in another conversation: %+v, %d turns", s.done, a.runs.Load())
		}
	})
}

func TestTheOutcomeOfATruncatedMessageIsGone(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		body := `{"text":"hi","clientMessageId":"m-1"}`
		s := h.stream("POST", at(c, "/messages/stream"), body).wait()
		synctest.Wait()
		h.do(200, nil, "POST", at(c, "/messages/truncate"), `{"messageId":"`+s.done.UserMessageID+`","inclusive":true}`)
		again := h.stream("POST", at(c, "/messages/stream"), body).wait()
		if again.failed == nil || !strings.Contains(again.failed.Message, "no longer") {
			t.Errorf("%+v %+v", again.failed, again.done)
		}
		h.refused(410, "no longer", "POST", at(c, "/messages"), body)
		h.refused(404, "no turn", "GET", at(c, "/messages/stream"), "", "Last-Event-ID", s.ids[0])
	})
}

// Each frame's id leads back to its turn, even if the next turn was waiting already. No other id leads to a turn.
func TestAttach(t *testing.T) {
	withSteps(t, []string{"one", " two"}, func(h *harness, a *stepwise, next func()) {
		c := h.create()
		h.refused(404, "no turn", "GET", at(c, "/messages/stream"), "")
		wires := []*wire{
			h.stream("POST", at(c, "/messages/stream"), `{"text":"first"}`),
		}
		synctest.Wait()
		wires = append(wires, h.stream("POST", at(c, "/messages/stream"), `{"text":"second"}`))
		synctest.Wait()
		if ids := wires[1].seen().ids; len(ids) != 0 {
			t.Errorf("a turn that waits gives ids: %q", ids)
		}
		fresh := h.stream("GET", at(c, "/messages/stream"), "")
		synctest.Wait()
		next()
		mid := h.stream("GET", at(c, "/messages/stream"), "", "Last-Event-ID", wires[0].seen().ids[0])
		synctest.Wait()
		if s := mid.seen(); s.text != "one" || s.done != nil {
			t.Errorf("attached in the middle: %q", s.text)
		}
		next()
		first := wires[0].wait()
		for name, w := range map[string]*wire{"fresh": fresh, "mid": mid} {
			if d := cmp.Diff(first.done, w.wait().done, cmp.AllowUnexported(doneFrame{}, outcome{})); d != "" {
				t.Errorf("%s (-first +this)\n%s", name, d)
			}
		}
		synctest.Wait()
		next()
		next()
		second := wires[1].wait()
		for name, s := range map[string]chat{"first": first, "second": second} {
			for _, id := range s.ids {
				got := h.stream("GET", at(c, "/messages/stream"), "", "Last-Event-ID", id).wait()
				if d := cmp.Diff(s.done, got.done, cmp.AllowUnexported(doneFrame{}, outcome{})); d != "" {
					t.Errorf("%s at %s (-live +attached)\n%s", name, id, d)
				}
				if !slices.Equal(got.ids, s.ids[len(s.ids)-1:]) {
					t.Errorf("%s at %s: ids %q, want the last alone", name, id, got.ids)
				}
			}
		}
		epoch, _, _ := strings.Cut(second.ids[0], ".")
		h.refused(404, "no turn", "GET", at(c, "/messages/stream"), "")
		for _, id := range []string{epoch + ".999999", epoch + ".0", "another.5"} {
			h.refused(404, "no turn", "GET", at(c, "/messages/stream"), "", "Last-Event-ID", id)
		}
		for _, id := range []string{"x", "5", epoch + ".-1", epoch + ".1e3", epoch + ".99999999999999999999"} {
			h.refused(400, "Last-Event-ID", "GET", at(c, "/messages/stream"), "", "Last-Event-ID", id)
		}
		if n := a.runs.Load(); n != 2 {
			t.Errorf("%d turns", n)
		}
	})
}

func TestATurnStoppedInTheQueue(t *testing.T) {
	withSteps(t, []string{"one"}, func(h *harness, _ *stepwise, next func()) {
		c := h.create()
		running := h.stream("POST", at(c, "/messages/stream"), `{"text":"first"}`)
		synctest.Wait()
		queued := h.stream("POST", at(c, "/messages/stream"), `{"text":"second","clientMessageId":"q"}`)
		synctest.Wait()
		s, err := h.gw.Conversation(h.t.Context(), gateway.Principal{Admin: true}, gateway.ActionRead, c)
		if err != nil || len(s.Open) != 2 {
			t.Fatal(s.Open, err)
		}
		if _, err := h.gw.Do(h.t.Context(), gateway.Principal{Admin: true}, c, gateway.Command{Type: gateway.CommandStop, Turn: s.Open[1]}); err != nil {
			t.Fatal(err)
		}
		q := queued.wait()
		if q.done == nil || q.done.Outcome != event.Cancelled || len(q.ids) != 0 {
			t.Errorf("%+v with ids %q", q.done, q.ids)
		}
		next()
		r := running.wait()
		for _, id := range r.ids {
			if got := h.stream("GET", at(c, "/messages/stream"), "", "Last-Event-ID", id).wait(); got.done == nil || got.done.Turn != r.done.Turn {
				t.Errorf("at %s: %+v", id, got.done)
			}
		}
		// The turn never ran, but its outcome is known.
		if again := h.stream("POST", at(c, "/messages/stream"), `{"text":"second","clientMessageId":"q"}`).wait(); again.done == nil || again.done.Turn != q.done.Turn {
			t.Errorf("%+v", again.done)
		}
	})
}

func TestDeltaV2(t *testing.T) {
	withSteps(t, []string{"one", " two", " three"}, func(h *harness, _ *stepwise, next func()) {
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi","streamProtocol":"delta-v2"}`)
		synctest.Wait()
		old := h.stream("POST", at(c, "/messages/stream"), `{"text":"unknown","streamProtocol":"delta-v9"}`)
		synctest.Wait()
		next()
		next()
		late := h.stream("GET", at(c, "/messages/stream?streamProtocol=delta-v2"), "", "Last-Event-ID", w.seen().ids[0])
		synctest.Wait()
		next()
		if got, want := frames(w), []string{`{"type":"token","text":"one"}`, `{"type":"token","text":" two"}`, `{"type":"token","text":" three"}`}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if got, want := frames(late), []string{`{"type":"token","fullText":"one two"}`, `{"type":"token","text":" three"}`}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		for range 3 {
			next()
		}
		for _, k := range old.wait().tokens {
			if k.FullText == nil {
				t.Error("a token without fullText, which an older client needs")
			}
		}
	})
}

// frames returns the token frames of a finished stream.
func frames(w *wire) []string {
	w.wait()
	var all []string
	for line := range strings.SplitSeq(string(w.body), "\n") {
		if f, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(f, `"type":"token"`) {
			all = append(all, f)
		}
	}
	return all
}

func TestProgress(t *testing.T) {
	a := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		var err error
		do := func(e error) {
			if err == nil {
				err = e
			}
			synctest.Wait()
		}
		do(nil)
		do(out.Reasoning("hm"))
		do(out.Reasoning("hmm"))
		do(out.Text("Let me look."))
		tool, e := out.Tool("search", "c1")
		do(e)
		do(tool.Output("found"))
		do(tool.Done())
		do(out.Status("Sorting", ""))
		do(out.Text("Here."))
		return err
	})
	bubble(t, a, func(h *harness) {
		s := h.stream("POST", at(h.create(), "/messages/stream"), `{"text":"hi"}`).wait()
		want := []string{"thinking", "streaming", "running_tool", "thinking", "running_action", "streaming"}
		if !slices.Equal(s.kinds, want) {
			t.Errorf("%q, want %q", s.kinds, want)
		}
	})
}

// An agent whose text has ended, but whose process has not exited, is not shown as thinking.
func TestProgressAfterTheText(t *testing.T) {
	a := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		synctest.Wait()
		for _, ops := range [][]event.Event{
			{{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}}, {Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}}},
			{{Type: event.PartAppend, Message: "m", Part: "p", Text: "Hello."}},
			{{Type: event.PartEnd, Message: "m", Part: "p"}},
			{{Type: event.MessageEnd, Message: "m"}},
		} {
			if err := out.Emit(ops, nil); err != nil {
				return err
			}
			synctest.Wait()
		}
		return nil
	})
	bubble(t, a, func(h *harness) {
		s := h.stream("POST", at(h.create(), "/messages/stream"), `{"text":"hi"}`).wait()
		if want := []string{"thinking", "streaming"}; !slices.Equal(s.kinds, want) || s.text != "Hello." {
			t.Errorf("%q, want %q; text %q", s.kinds, want, s.text)
		}
	})
}

// A server that closes ends its streams without a last frame. Clients get the rest after the restart.
func TestShutdownAndResume(t *testing.T) {
	withSteps(t, []string{"one", " two"}, func(h *harness, _ *stepwise, next func()) {
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		waits := h.stream("POST", at(c, "/messages"), `{"text":"and"}`)
		synctest.Wait()
		next()
		h.srv.Close()
		s := w.wait()
		if s.done != nil || s.failed != nil || s.text != "one" {
			t.Errorf("%+v %+v %q", s.done, s.failed, s.text)
		}
		if waits.wait(); waits.status != 503 {
			t.Errorf("a request that waits gets %d %s", waits.status, waits.body)
		}
		h.stop() // the agent can't resume, so its turn is interrupted after the drain time
		h.start()
		got := h.stream("GET", at(c, "/messages/stream"), "", "Last-Event-ID", s.ids[len(s.ids)-1]).wait()
		if got.done == nil || got.final() != "one" || got.done.Outcome != event.Interrupted || !got.done.Error.Retryable {
			t.Errorf("%+v", got.done)
		}
		next()
		next()
		list := h.messages(c)
		if i := slices.IndexFunc(list, func(m message) bool { return m.ID == got.done.MessageID }); i < 0 || !list[i].Interrupted || list[i].Text != "one" {
			t.Errorf("%+v", list)
		}
	})
}

func TestDeletedWhileItStreams(t *testing.T) {
	withSteps(t, []string{"one", " two"}, func(h *harness, _ *stepwise, next func()) {
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		slow := h.open(&wire{held: make(chan struct{})}, "GET", at(c, "/messages/stream"), "")
		synctest.Wait()
		next()
		h.do(200, nil, "DELETE", at(c, ""), "")
		close(slow.held)
		for name, w := range map[string]*wire{"live": w, "slow": slow} {
			if s := w.wait(); s.failed == nil || s.failed.Message != "Conversation not found" {
				t.Errorf("%s: %+v %+v", name, s.done, s.failed)
			}
		}
	})
}

// A message that steers a running turn streams that turn, under the message's own id.
func TestSteering(t *testing.T) {
	a := &steered{}
	bubble(t, a, func(h *harness) {
		a.heard = make(chan string)
		c := h.create()
		first := h.stream("POST", at(c, "/messages/stream"), `{"text":"go"}`)
		synctest.Wait()
		second := h.stream("POST", at(c, "/messages/stream"), `{"text":"left"}`)
		one, two := first.wait().done, second.wait().done
		if one == nil || two == nil || one.Turn != two.Turn || one.MessageID != two.MessageID || one.FullText != "left it is" || one.UserMessageID == two.UserMessageID {
			t.Errorf("%+v\n%+v", one, two)
		}
		list := h.messages(c)
		wantTexts(t, list, "user: go", "user: left", "assistant: left it is")
		if list[1].ID != two.UserMessageID {
			t.Errorf("userMessageId %s, want %s", two.UserMessageID, list[1].ID)
		}
	})
}

type steered struct {
	heard chan string
	hold  chan struct{} // nil: it answers at once
}

func (s *steered) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	select {
	case text := <-s.heard:
		return out.Text(text + " it is")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *steered) Steer(ctx context.Context, _ agent.Input, m agent.Message) error {
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case s.heard <- m.Text:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The same if the sender disconnects before the agent has decided.
func TestSteeringWithoutItsSender(t *testing.T) {
	a := &steered{}
	bubble(t, a, func(h *harness) {
		a.heard = make(chan string)
		c := h.create()
		first := h.stream("POST", at(c, "/messages/stream"), `{"text":"go"}`)
		synctest.Wait()
		a.hold = make(chan struct{})
		second := h.stream("POST", at(c, "/messages/stream"), `{"text":"left"}`)
		synctest.Wait()
		second.cancel()
		synctest.Wait()
		close(a.hold)
		if s := first.wait(); s.done == nil || s.final() != "left it is" {
			t.Errorf("%+v %+v", s.done, s.failed)
		}
		second.wait()
		wantTexts(t, h.messages(c), "user: go", "user: left", "assistant: left it is")
	})
}
