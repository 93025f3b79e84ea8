package eliza

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// troubled is a journal whose commits can be delayed or made to fail.
type troubled struct {
	journal.Journal
	mu  sync.Mutex
	run func(context.Context) error // nil: no trouble
}

func (j *troubled) set(run func(context.Context) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.run = run
}

func (j *troubled) Append(ctx context.Context, b journal.Batch) error {
	j.mu.Lock()
	run := j.run
	j.mu.Unlock()
	if run != nil {
		if err := run(ctx); err != nil {
			return err
		}
	}
	return j.Journal.Append(ctx, b)
}

func withTrouble(t *testing.T, texts []string, test func(h *harness, j *troubled, next func())) {
	t.Helper()
	withSteps(t, texts, func(h *harness, _ *stepwise, next func()) {
		h.stop()
		j := &troubled{Journal: h.journal}
		h.store = j
		h.start()
		test(h, j, next)
	})
}

// Clients give up after 10 s without headers, however long a command takes.
func TestHeadersDoNotWaitForASlowDisk(t *testing.T) {
	withTrouble(t, []string{"one"}, func(h *harness, j *troubled, next func()) {
		c := h.create()
		j.set(func(context.Context) error { time.Sleep(8 * time.Second); return nil })
		start := time.Now()
		var head time.Duration
		w := &wire{}
		w.wrote = func() {
			if head == 0 {
				head = time.Since(start)
			}
		}
		h.open(w, "POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		time.Sleep(8*time.Second + time.Millisecond)
		j.set(nil)
		synctest.Wait()
		next()
		s := w.wait()
		if head != headersWithin {
			t.Errorf("the first bytes came after %v, want %v", head, headersWithin)
		}
		if s.done == nil || s.final() != "one" || s.beats != 2 {
			t.Errorf("%+v, %d heartbeats", s.done, s.beats)
		}
	})
}

// A full disk after the headers is reported in the stream, and nothing is stored.
func TestAFullDisk(t *testing.T) {
	withTrouble(t, []string{"one"}, func(h *harness, j *troubled, next func()) {
		c := h.create()
		j.set(func(context.Context) error { return journal.ErrFull })
		s := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`).wait()
		if s.failed == nil || !s.failed.Retryable || s.done != nil {
			t.Fatalf("%+v %+v", s.failed, s.done)
		}
		h.refused(503, "", "POST", at(c, "/messages"), `{"text":"hi"}`)
		j.set(nil)
		time.Sleep(5 * time.Second)
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		next()
		if s := w.wait(); s.done == nil || s.final() != "one" {
			t.Errorf("%+v %+v", s.done, s.failed)
		}
		wantTexts(t, h.messages(c), "user: hi", "assistant: one")
	})
}

// After a conversation's writer gives up, the log is read again, and the stream continues to the end that recovery gives the
// turn. Neither the stream nor the list shows that as a complete answer.
func TestAStreamOutlivesItsFeed(t *testing.T) {
	withTrouble(t, []string{"one", " two"}, func(h *harness, j *troubled, next func()) {
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		next()
		var once sync.Once
		j.set(func(context.Context) (err error) {
			once.Do(func() { err = errors.New("disk on fire") })
			return err
		})
		next()
		s := w.wait()
		if s.done == nil || s.final() != "one" || s.done.Outcome != event.Interrupted || s.done.FailureKind != providerIssue {
			t.Errorf("%+v %+v", s.done, s.failed)
		}
		list := h.messages(c)
		wantTexts(t, list, "user: hi", "assistant: one")
		if list[1].FailureKind != providerIssue || !list[1].Interrupted {
			t.Errorf("%+v", list[1])
		}
	})
}

// lasting is an agent whose turns the next process can resume.
type lasting struct{ agentFunc }

func (l lasting) Resume(ctx context.Context, in agent.Input, _ json.RawMessage, out *agent.Emitter) error {
	return l.agentFunc(ctx, in, out)
}

// When another process replaces the gateway, the stream of a turn that continues ends without a last frame. The client attaches
// again and shows no error.
func TestAStreamOfATurnThatOutlivesTheGateway(t *testing.T) {
	a := lasting{func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := out.Text("begun"); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	bubble(t, a, func(h *harness) {
		w := h.stream("POST", at(h.create(), "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		if err := h.gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if s := w.wait(); s.failed != nil || s.done != nil || s.text != "begun" {
			t.Errorf("%q, %+v %+v", s.text, s.done, s.failed)
		}
	})
}

// The same over a real connection: headers and text are sent at once, not when a buffer is full.
func TestOverASocket(t *testing.T) {
	a := &stepwise{texts: []string{"one", " two"}, goOn: make(chan struct{})}
	j := memory.New()
	gw, err := gateway.New(gateway.Config{Journal: j, Agents: gateway.Agents{"eliza": {Agent: a}}, DefaultAgent: "eliza"})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{})
	Register(srv, gw, Options{Heartbeat: time.Millisecond})
	hs := httptest.NewServer(srv)
	defer func() {
		hs.Close()
		if err := errors.Join(gw.Shutdown(context.Background()), j.Close()); err != nil {
			t.Error(err)
		}
	}()
	post := func(ctx context.Context, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, "POST", hs.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := hs.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	post(t.Context(), "/api/conversations", `{"id":"c"}`).Body.Close()

	ctx, leave := context.WithCancel(t.Context())
	res := post(ctx, "/api/conversations/c/messages/stream", `{"text":"hi"}`) // returns with the headers, before any text
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	a.goOn <- struct{}{}
	var c chat
	read := func(until func() bool) {
		t.Helper()
		body := bufio.NewReader(res.Body)
		for !until() {
			line, err := body.ReadBytes('\n')
			if err == nil {
				err = c.feed(line)
			}
			if err != nil {
				t.Fatalf("%v after %q", err, c.views)
			}
		}
	}
	read(func() bool { return c.text == "one" && c.beats > 3 })
	leave()
	res.Body.Close()
	a.goOn <- struct{}{} // it continues without its reader

	r, err := http.NewRequestWithContext(t.Context(), "GET", hs.URL+"/api/conversations/c/messages/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", c.ids[len(c.ids)-1])
	if res, err = hs.Client().Do(r); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	read(func() bool { return c.done != nil })
	if c.final() != "one two" || !slices.Equal(c.views, []string{"one", "one two"}) && !slices.Equal(c.views, []string{"one", "one", "one two"}) {
		t.Errorf("%q, %q", c.final(), c.views)
	}
}
