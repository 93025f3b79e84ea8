package native_test

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
)

// teller is an agent that emits each text of the channel and ends when the channel is closed.
func teller() (texts chan string, a agent.Agent) {
	texts = make(chan string)
	return texts, script(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		for {
			select {
			case text, more := <-texts:
				if !more {
					return nil
				}
				if err := out.Text(text); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

func TestEvents(t *testing.T) {
	for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
		t.Run(accept, func(t *testing.T) {
			texts, a := teller()
			h := newHarness(t, options{agent: a})
			id := h.create()
			e := h.events(id, "Accept", accept)
			if got := e.Header.Get("Content-Type"); got != accept+"; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
			hello, _ := e.next()
			if hello.Type != "hello" || hello.Protocol != "leat/1" || hello.Conversation != id || len(hello.Turns) != 0 || hello.sseID != "" {
				t.Errorf("first frame %s", hello.raw)
			}
			r := &reader{t: t}
			e.until(r, func() bool { return r.resets == 1 })
			ack := h.send(id, "hi")
			said := "user: hi\nassistant: "
			for _, text := range []string{"one", " two", " thrée 😀"} {
				texts <- text
				said += text
				e.until(r, func() bool { return r.text() == said })
			}
			// A reader that connects during the turn gets the open turn and a snapshot.
			late := h.events(id, "Accept", accept)
			hello, _ = late.next()
			if len(hello.Turns) != 1 || hello.Turns[0].ID != ack.Turn || hello.Turns[0].State != "running" {
				t.Errorf("hello during a turn: %s", hello.raw)
			}
			r2 := &reader{t: t}
			late.until(r2, func() bool { return r2.text() == said })
			texts <- ", end"
			close(texts)
			e.until(r, func() bool { return r.state(ack.Turn) == "ended" })
			late.until(r2, func() bool { return r2.state(ack.Turn) == "ended" })
			if r.text() != said+", end" || r2.text() != r.text() || r.resets != 1 || r2.resets != 1 {
				t.Errorf("readers have %q (%d resets) and %q (%d)", r.text(), r.resets, r2.text(), r2.resets)
			}
		})
	}
}

func TestResume(t *testing.T) {
	texts, a := teller()
	h := newHarness(t, options{agent: a})
	id := h.create()
	r := &reader{t: t}
	e := h.events(id)
	ack := h.send(id, "hi")
	texts <- "before"
	e.until(r, func() bool { return strings.HasSuffix(r.text(), "before") })
	_ = e.Body.Close()
	texts <- " and after"
	close(texts)
	h.ended(id, ack.Turn)
	done := func() bool { return r.state(ack.Turn) == "ended" }
	want := "user: hi\nassistant: before and after"
	resets := func(what string, n int) {
		t.Helper()
		if r.resets != n || r.text() != want {
			t.Errorf("%s: %d resets, want %d; %q", what, r.resets, n, r.text())
		}
	}
	h.events(id, "Last-Event-ID", string(r.cursor)).until(r, done)
	resets("by Last-Event-ID", 1)
	again := h.after(id, string(r.cursor)) // nothing is new, so the next event comes first
	h.send(id, "more")
	again.until(r, func() bool { return strings.HasSuffix(r.text(), "user: more") })
	want += "\nuser: more"
	resets("by after", 1)
	// The header wins over the URL, which a browser repeats.
	h.after(id, "nonsense", "Last-Event-ID", string(r.cursor))

	epoch, seq, _ := r.cursor.Parse()
	for _, foreign := range []string{"", "nonsense", "x.1", string(feed.NewCursor(epoch, seq+1000)), string(feed.NewCursor("0"+epoch, 1)), strings.Repeat("9", 4000), "\u00e9\u0001."} {
		r = &reader{t: t}
		h.after(id, foreign).until(r, func() bool { return r.text() == want })
		resets("by "+foreign[:min(len(foreign), 20)], 1)
	}
}

// A connection that is interrupted at random bytes, many times, leads to the same transcript.
func TestInterruptedAnywhere(t *testing.T) {
	h := newHarness(t, options{agent: script(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		if err := out.Reasoning("thinking — "); err != nil {
			return err
		}
		tool, err := out.Tool("search", "c1")
		if err != nil {
			return err
		}
		for _, s := range []string{"α", "β", "γ"} {
			if err := tool.Output(s); err != nil {
				return err
			}
		}
		if err := tool.Done(); err != nil {
			return err
		}
		if err := out.Status("looking", dialect.Replace); err != nil {
			return err
		}
		if err := out.Status("found", dialect.Replace); err != nil {
			return err
		}
		for range 50 {
			if err := out.Text("wörd "); err != nil {
				return err
			}
		}
		return nil
	})})
	id := h.create()
	ack := h.send(id, "go")
	whole := &reader{t: t}
	h.events(id).until(whole, func() bool { return whole.state(ack.Turn) == "ended" })

	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		id := h.create()
		r := &reader{t: t}
		ack := h.send(id, "go")
		for try := 1; r.state(ack.Turn) != "ended"; try++ {
			e := h.events(id, "Last-Event-ID", string(r.cursor))
			left := rng.IntN(1000 * try) // in the end more than the largest frame
			for left > 0 && r.state(ack.Turn) != "ended" {
				n, err := e.Body.Read(e.buf[:min(left, 1+rng.IntN(700))])
				left -= n
				e.feed(e.buf[:n])
				for len(e.ready) > 0 {
					f, _ := e.next()
					r.take(f)
				}
				if err != nil {
					break
				}
			}
			_ = e.Body.Close()
		}
		if r.text() != whole.text() || len(r.fold.Messages) != 2 {
			t.Fatalf("run %d: %q, want %q", i, r.text(), whole.text())
		}
	}
}

func TestTranscript(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	for _, text := range []string{"a", "b", "c"} {
		h.ended(id, h.send(id, text).Turn)
	}
	_, b := h.do(http.MethodGet, "/api/conversations/"+id+"/transcript", "", "snapshot")
	r := &reader{t: t}
	r.take(parse(t, b))
	if want := "user: a\nassistant: you said: a\nuser: b\nassistant: you said: b\nuser: c\nassistant: you said: c"; r.text() != want {
		t.Errorf("transcript %q", r.text())
	}
	// The stream resumes at the cursor of the document.
	e := h.events(id, "Last-Event-ID", string(r.cursor))
	ack := h.send(id, "d")
	e.until(r, func() bool { return r.state(ack.Turn) == "ended" })
	if r.resets != 1 {
		t.Errorf("%d resets", r.resets)
	}

	last := r.fold.Messages[len(r.fold.Messages)-1].ID
	_, b = h.do(http.MethodGet, "/api/conversations/"+id+"/transcript?before="+last+"&limit=3", "", "page")
	var page feed.Page
	if err := json.Unmarshal(b, &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Messages) != 3 || !page.Earlier || page.Messages[2].Visible() != "d" || page.FirstMessage() != page.Messages[0].ID {
		t.Errorf("page %s", b)
	}
	base := "/api/conversations/" + id + "/transcript"
	h.refused(http.MethodGet, base+"?before=nothing", "", 404, gateway.ReasonUnknown)
	h.refused(http.MethodGet, base+"?before="+last+"&limit=0", "", 400, server.ReasonInvalid)
	h.refused(http.MethodGet, base+"?before="+last+"&limit=201", "", 400, server.ReasonInvalid)
	h.refused(http.MethodGet, base+"?before="+last+"&limit=x", "", 400, server.ReasonInvalid)
	h.refused(http.MethodGet, base+"?limit=3", "", 400, server.ReasonInvalid)

	_, b = h.do(http.MethodGet, "/api/turns/"+ack.Turn, "", "turnDocument")
	var doc struct {
		Conversation string
		Turn         struct{ State, Outcome string }
	}
	if err := json.Unmarshal(b, &doc); err != nil || doc.Conversation != id || doc.Turn.State != "ended" || doc.Turn.Outcome != "completed" {
		t.Errorf("turn %s (%v)", b, err)
	}
	h.refused(http.MethodGet, "/api/turns/nothing", "", 404, server.ReasonNotFound)
	h.do(http.MethodGet, "/api/agents", "", "agents")
	if _, b := h.do(http.MethodGet, "/api/dialects", "", "dialects"); !strings.Contains(string(b), `"eliza-actions"`) {
		t.Errorf("dialects %s", b)
	}
}

// A reader that stalls delays no other reader, and gets the missed events in few frames.
func TestSlowViewer(t *testing.T) {
	texts, a := teller()
	h := newHarness(t, options{agent: a})
	id := h.create()
	slow := h.events(id)
	r := &reader{t: t}
	slow.until(r, func() bool { return r.resets == 1 })
	quick := h.events(id)
	q := &reader{t: t}
	ack := h.send(id, "go")
	word := strings.Repeat("x", 10_000) + " "
	// more than the sockets buffer, so that the server's write to the slow reader blocks
	const words = 1 << 10
	for range words {
		texts <- word
	}
	close(texts)
	quick.until(q, func() bool { return q.state(ack.Turn) == "ended" })
	frames := 0
	for r.state(ack.Turn) != "ended" {
		f, more := slow.next()
		if !more {
			t.Fatal("the slow reader was disconnected")
		}
		if r.take(f) {
			frames++
		}
	}
	// A reader so far behind may get a snapshot, which is shorter than the events.
	if r.text() != q.text() || len(r.text()) < words*len(word) || r.resets > 2 {
		t.Errorf("the slow reader has %d bytes (%d resets), the quick one %d", len(r.text()), r.resets, len(q.text()))
	}
	if frames > words*3/4 { // the system buffers some MB of frames with one word each
		t.Errorf("%d frames for %d events: nothing was merged", frames, words)
	}
}

func TestDeleted(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	e := h.events(id)
	r := &reader{t: t}
	e.until(r, func() bool { return r.resets == 1 })
	h.do(http.MethodPost, "/api/conversations/"+id+"/commands", `{"type":"delete"}`, "ack")
	var last frame
	for {
		f, more := e.next()
		if !more {
			break
		}
		r.take(f)
		last = f
	}
	if last.Type != "error" || last.Reason != gateway.ReasonDeleted || r.text() != "" {
		t.Errorf("last frame %s, text %q", last.raw, r.text())
	}
	h.refused(http.MethodGet, "/api/conversations/"+id+"/events", "", 404, server.ReasonNotFound)
}

func TestShutdownTellsReaders(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
		e := h.events(id, "Accept", accept)
		r := &reader{t: t}
		e.until(r, func() bool { return r.resets == 1 })
		defer func() {
			f, _ := e.next()
			if f.Type != "error" || f.Reason != server.ReasonUnavailable || f.RetryAfter <= 0 {
				t.Errorf("last frame %s", f.raw)
			}
			if f, more := e.next(); more {
				t.Errorf("after the last frame: %s", f.raw)
			}
		}()
	}
	h.stop()
}

// An EventSource does not parse Leat's frames, so a shutdown sends it the retry delay as an SSE field.
func TestShutdownTellsEventSource(t *testing.T) {
	h := newHarness(t, options{})
	res := h.open(http.MethodGet, "/api/conversations/"+h.create()+"/events", nil, "Accept", "text/event-stream")
	go h.stop()
	b, err := io.ReadAll(res.Body)
	if all := strings.Split(string(b), "\n\n"); err != nil || len(all) < 4 || !regexp.MustCompile(`(?m)^retry: ?\d+$`).MatchString(all[len(all)-3]) {
		t.Errorf("%v, it ends with %q", err, b)
	}
	h.stop()
}

func TestEventsHead(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	res := h.open(http.MethodHead, "/api/conversations/"+id+"/events", nil)
	if b, err := io.ReadAll(res.Body); res.StatusCode != 200 || len(b) != 0 || err != nil {
		t.Errorf("%d %q %v", res.StatusCode, b, err)
	}
	h.refused(http.MethodGet, "/api/conversations/"+id+"/events", "", 406, server.ReasonInvalid, "Accept", "image/png")
}
