package leat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit is how long a test waits for what has to come, on a busy machine.
const waitLimit = time.Minute

// story is an agent that says words as they are handed to it, and ends with its last.
type story struct{ words chan string }

func (s story) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	for {
		select {
		case w, ok := <-s.words:
			if !ok {
				return nil
			}
			if err := out.Text(w); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type asker struct{}

func (asker) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	a, err := out.Ask(ctx, event.Request{ID: "r", Kind: event.RequestApproval, Prompt: "May I?"})
	if err != nil {
		return err
	}
	return out.Text(string(a.Decision) + " " + a.Text)
}

// house is a gateway behind a listener that can cut connections.
type house struct {
	*leat.Client
	t     *testing.T
	words chan string
	conns *cutter
}

func newHouse(t *testing.T, token string) *house {
	t.Helper()
	h := &house{t: t, words: make(chan string)}
	j := memory.New()
	gw, err := gateway.New(gateway.Config{
		Journal:      j,
		Agents:       gateway.Agents{"story": {Agent: story{h.words}}, "asker": {Agent: asker{}}},
		DefaultAgent: "story", Settings: gateway.Settings{Drain: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: token})
	native.Register(srv, gw)
	native.RegisterInspection(srv, inspection.New(gw, inspection.Config{Journal: j}))
	eliza.Register(srv, gw, eliza.Options{})
	if err := ops.RegisterBackup(srv, copyist("a whole store"), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.conns = &cutter{Listener: l}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, h.conns) }()
	transport := &http.Transport{}
	h.Client = &leat.Client{URL: "http://" + l.Addr().String() + "/", Token: token, HTTP: &http.Client{Transport: transport}}
	t.Cleanup(func() {
		if err := gw.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	})
	return h
}

// cutter is a listener whose connections a test can cut.
type cutter struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

type copyist string

func (c copyist) Backup(_ context.Context, path string) error {
	return os.WriteFile(path, []byte(c), 0o600)
}

func (h *house) create() string {
	h.t.Helper()
	c, err := h.Create(h.t.Context(), leat.CreateOptions{Title: "a talk"})
	if err != nil {
		h.t.Fatal(err)
	}
	return c.ID
}

func (h *house) say(word string) {
	h.t.Helper()
	select {
	case h.words <- word:
	case <-time.After(waitLimit):
		h.t.Fatalf("nobody says %q", word)
	}
}

func TestConversations(t *testing.T) {
	h := newHouse(t, "")
	ctx := t.Context()
	c, err := h.Create(ctx, leat.CreateOptions{ID: "mine/../x", Title: "t"})
	var e *leat.Error
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest || e.Reason != "invalid" || e.Temporary() {
		t.Errorf("a bad id: %v", err)
	}
	c, err = h.Create(ctx, leat.CreateOptions{ID: "ä b", Title: "t", Agent: "asker", Metadata: map[string]json.RawMessage{"k": json.RawMessage("1")}})
	if err != nil || c.ID != "ä b" || c.Title != "t" || c.Agent != "asker" || c.Created.IsZero() || string(c.Metadata["k"]) != "1" {
		t.Fatalf("%+v, %v", c, err)
	}
	if got, err := h.Conversation(ctx, "ä b"); err != nil || got.ID != c.ID {
		t.Errorf("%+v, %v", got, err)
	}
	all, err := h.Conversations(ctx)
	if err != nil || len(all) != 1 || all[0].ID != "ä b" {
		t.Errorf("%+v, %v", all, err)
	}
	agents, err := h.Agents(ctx)
	if err != nil || len(agents) != 2 || agents[1].Name != "story" || !agents[1].Default {
		t.Errorf("%+v, %v", agents, err)
	}
	title := "new"
	if _, err := h.Do(ctx, "ä b", leat.Command{Type: "update", Title: &title}); err != nil {
		t.Error(err)
	}
	if _, err := h.Do(ctx, "ä b", leat.Command{Type: "inject", Message: &leat.Message{Text: "note"}}); err != nil {
		t.Error(err)
	}
	if got, err := h.Conversation(ctx, "ä b"); err != nil || !got.Unread || got.Read != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := h.MarkRead(ctx, "ä b", 0); err != nil {
		t.Error(err)
	}
	if got, err := h.Conversation(ctx, "ä b"); err != nil || got.Unread || got.Read == 0 {
		t.Errorf("read: %+v, %v", got, err)
	}
	if tr, err := h.Transcript(ctx, "ä b"); err != nil || tr.Title != "new" {
		t.Errorf("%+v, %v", tr, err)
	}
	if err := h.Delete(ctx, "ä b"); err != nil {
		t.Error(err)
	}
	if _, err := h.Conversation(ctx, "ä b"); !errors.As(err, &e) || e.Status != http.StatusNotFound {
		t.Errorf("a deleted one: %v", err)
	}
	if err := h.Follow(ctx, "ä b", func(leat.Update) error { return nil }); !errors.As(err, &e) || e.Status != http.StatusNotFound {
		t.Errorf("follow a deleted one: %v", err)
	}
}

// follower collects what a reader is told.
type follower struct {
	t        *testing.T
	texts    chan string // visible text after each update
	done     chan error
	resets   atomic.Int64
	connects atomic.Int64
	lost     atomic.Int64
}

func (h *house) follow(ctx context.Context, id, turn string) *follower {
	f := &follower{t: h.t, texts: make(chan string, 100), done: make(chan error, 1)}
	o := leat.FollowOptions{OnDisconnect: func(error, time.Duration) { f.lost.Add(1) }}
	go func() {
		f.done <- h.FollowWith(ctx, id, o, func(u leat.Update) error {
			switch {
			case u.Connected:
				f.connects.Add(1)
				return nil
			case u.Reset:
				f.resets.Add(1)
			}
			f.texts <- u.Transcript.Visible(turn)
			if t := u.Transcript.Turn(turn); t != nil && !t.Unfinished() {
				return leat.ErrStop
			}
			return nil
		})
	}()
	return f
}

// sees waits until the text is that.
func (f *follower) sees(want string) {
	f.t.Helper()
	last := ""
	for late := time.After(waitLimit); last != want; {
		select {
		case last = <-f.texts:
		case <-late:
			f.t.Fatalf("the text is %q, not %q", last, want)
		}
	}
}

// A reader whose connection breaks repeatedly sees every event, starting at its cursor.
func TestFollowAcrossCuts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	id := h.create()
	ack, err := h.Send(t.Context(), id, "tell")
	if err != nil {
		t.Fatal(err)
	}
	f := h.follow(t.Context(), id, ack.Turn)
	want := ""
	for i := range 5 {
		word := fmt.Sprintf("w%d é ", i)
		h.say(word)
		want += word
		f.sees(want)
		h.conns.cut()
		word = fmt.Sprintf("unseen%d ", i) // said while nobody is connected, or just again
		h.say(word)
		want += word
		f.sees(want)
	}
	close(h.words)
	if err := <-f.done; err != nil {
		t.Error(err)
	}
	if f.resets.Load() != 1 {
		t.Errorf("%d snapshots; one cursor is enough", f.resets.Load())
	}
	if f.connects.Load() < 2 || f.lost.Load() < 2 {
		t.Errorf("%d connections, %d lost: nothing was cut", f.connects.Load(), f.lost.Load())
	}
	_, turn, err := h.Turn(t.Context(), ack.Turn)
	if err != nil || turn.Outcome != event.Completed {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestFollowEnds(t *testing.T) {
	h := newHouse(t, "")
	id := h.create()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	f := h.follow(ctx, id, "none")
	f.sees("")
	cancel(enough)
	if err := <-f.done; !errors.Is(err, enough) {
		t.Errorf("cancelled: %v", err)
	}
	own := errors.New("own")
	if err := h.Follow(t.Context(), id, func(leat.Update) error { return own }); !errors.Is(err, own) {
		t.Errorf("own error: %v", err)
	}
	f = h.follow(t.Context(), id, "none")
	f.sees("")
	if err := h.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var e *leat.Error
	if err := <-f.done; !errors.As(err, &e) || e.Temporary() {
		t.Errorf("deleted: %v", err)
	}
}

func TestCommands(t *testing.T) {
	h := newHouse(t, "")
	id := h.create()
	ctx := t.Context()
	send := leat.Command{Type: "send", Key: "k", Agent: "asker", Message: &leat.Message{Text: "hi"}}
	first, err := h.Do(ctx, id, send)
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.Do(ctx, id, send)
	if err != nil || again.Turn != first.Turn || !again.Repeated {
		t.Errorf("%+v, %v", again, err)
	}
	send.Message.Text = "other"
	var e *leat.Error
	if _, err := h.Do(ctx, id, send); !errors.As(err, &e) || e.Reason != "conflict" || !e.Rejected || e.Status != http.StatusConflict {
		t.Errorf("another body: %v", err)
	}
	err = h.Follow(ctx, id, func(u leat.Update) error {
		turn := u.Transcript.Turn(first.Turn)
		switch {
		case turn == nil:
			return nil
		case len(turn.Requests) > 0:
			if _, err := h.Answer(ctx, id, first.Turn, turn.Requests[0].ID, event.Approve, "please"); err != nil {
				return err
			}
		case !turn.Unfinished():
			if got := u.Transcript.Visible(first.Turn); got != "approve please" {
				t.Errorf("text %q", got)
			}
			return leat.ErrStop
		}
		return nil
	})
	// The request is still open in the update after the answer: the second one loses.
	if err != nil && (!errors.As(err, &e) || e.Reason != "already_ended") {
		t.Error(err)
	}
	stop, err := h.Stop(ctx, id, first.Turn)
	if err != nil || stop.Turn != first.Turn {
		t.Errorf("%+v, %v", stop, err)
	}
}

func TestPages(t *testing.T) {
	h := newHouse(t, "")
	id := h.create()
	for i := range 120 {
		if _, err := h.Do(t.Context(), id, leat.Command{Type: "inject", Message: &leat.Message{Text: fmt.Sprint("note ", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	err := h.Follow(t.Context(), id, func(u leat.Update) error {
		if !u.Reset {
			return nil
		}
		for u.Transcript.Earlier {
			before := u.Transcript.Messages[0].ID
			p, err := h.Page(t.Context(), id, before, 0)
			if err != nil {
				return err
			}
			if !u.AddPage(p, before) {
				return errors.New("a page does not fit")
			}
			if u.AddPage(p, before) {
				return errors.New("the same page fits twice")
			}
		}
		for i, m := range u.Transcript.Messages {
			if m.Visible() != fmt.Sprint("note ", i) {
				return fmt.Errorf("message %d: %s", i, m.Visible())
			}
		}
		if len(u.Transcript.Messages) != 120 {
			return fmt.Errorf("%d messages", len(u.Transcript.Messages))
		}
		return leat.ErrStop
	})
	if err != nil {
		t.Error(err)
	}
}

func TestToken(t *testing.T) {
	h := newHouse(t, "secret")
	id := h.create()
	var e *leat.Error
	wrong := &leat.Client{URL: h.URL, Token: "wrong", HTTP: h.HTTP}
	if _, err := wrong.Conversations(t.Context()); !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
		t.Errorf("a wrong token: %v", err)
	}
	if err := wrong.Follow(t.Context(), id, func(leat.Update) error { return nil }); !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
		t.Errorf("follow with a wrong token: %v", err)
	}
	if strings.Contains(fmt.Sprint(e), "wrong") {
		t.Errorf("the error tells the token: %v", e)
	}
	alice := &leat.Client{URL: h.URL, Token: "secret", Subject: "alice", Tenant: "t", HTTP: h.HTTP}
	if _, err := alice.Conversation(t.Context(), id); !errors.As(err, &e) || e.Status != http.StatusNotFound {
		t.Errorf("a foreign conversation: %v", err)
	}
	var b strings.Builder
	if n, err := h.Backup(t.Context(), &b); err != nil || n != int64(b.Len()) || b.String() != "a whole store" {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := alice.Backup(t.Context(), &b); !errors.As(err, &e) || e.Status != http.StatusForbidden {
		t.Errorf("a backup for a user: %v", err)
	}
}

// After a temporary error the command is retried with the same key. A frame that can't be applied isn't requested in a loop.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var keys []string
	var mu sync.Mutex
	streams := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPost:
			var c leat.Command
			if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
				t.Error(err)
			}
			keys = append(keys, c.Key)
			switch len(keys) {
			case 1:
				panic(http.ErrAbortHandler) // the answer is lost
			case 2:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				io.WriteString(w, `{"error":"draining","reason":"draining","rejected":true}`)
			default:
				io.WriteString(w, `{"seq":7,"turn":"t"}`)
			}
		default:
			streams++
			w.Header().Set("Content-Type", "text/event-stream")
			if streams < 3 {
				if id := r.Header.Get("Last-Event-ID"); id != "" {
					t.Errorf("stream %d begins at %q", streams, id)
				}
				io.WriteString(w, `data: {"type":"hello","protocol":"leat/1","turns":[]}`+"\n\n")
				io.WriteString(w, "id: e.1\ndata: "+`{"type":"snapshot","conversation":"c","cursor":"e.1","epoch":"e","reset":true,"transcript":{"seq":1,"messages":[{"id":"m","role":"assistant","parts":[{"id":"p","kind":"text","text":"a"}]}],"turns":[]}}`+"\n\n")
				// A gap: it can't be applied.
				io.WriteString(w, "id: e.2\ndata: "+`{"type":"batch","cursor":"e.2","seq":2,"events":[{"seq":2,"type":"part.append","message":"m","part":"p","offset":9,"text":"x"}]}`+"\n\n")
				return
			}
			io.WriteString(w, `data: {"type":"hello","protocol":"other/9"}`+"\n\n")
		}
	}))
	defer srv.Close()
	c := &leat.Client{URL: srv.URL, HTTP: srv.Client()}
	ack, err := c.Send(t.Context(), "c", "hi")
	if err != nil || ack.Seq != 7 {
		t.Errorf("%+v, %v", ack, err)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[0] != keys[2] {
		t.Errorf("keys %q", keys)
	}
	waits := 0
	resets := 0
	err = c.FollowWith(t.Context(), "c", leat.FollowOptions{OnDisconnect: func(_ error, next time.Duration) {
		if next <= 0 {
			t.Error("no wait before the next try")
		}
		waits++
	}}, func(u leat.Update) error {
		if u.Reset {
			resets++
		}
		if u.Transcript.Message("m") != nil && u.Transcript.Message("m").Visible() != "a" {
			t.Errorf("it shows %q", u.Transcript.Message("m").Visible())
		}
		return nil
	})
	if !errors.Is(err, leat.ErrProtocol) {
		t.Errorf("another protocol: %v", err)
	}
	if waits != 2 || resets != 2 {
		t.Errorf("%d waits, %d snapshots", waits, resets)
	}
}

func TestNotAGateway(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/broken") {
			http.Error(w, "<html>no such page</html>", http.StatusNotFound)
			return
		}
		io.WriteString(w, "<html>hello</html>")
	}))
	defer srv.Close()
	c := &leat.Client{URL: srv.URL, HTTP: srv.Client()}
	if _, err := c.Conversations(t.Context()); !errors.Is(err, leat.ErrProtocol) {
		t.Errorf("a list: %v", err)
	}
	if err := c.Follow(t.Context(), "c", func(leat.Update) error { return nil }); !errors.Is(err, leat.ErrProtocol) {
		t.Errorf("a stream: %v", err)
	}
	if _, err := c.Conversation(t.Context(), "broken"); err == nil || !strings.Contains(err.Error(), "404") || strings.Contains(err.Error(), "<html>") {
		t.Errorf("a page of another server: %v", err)
	}
	if _, err := (&leat.Client{URL: "::"}).Conversations(t.Context()); err == nil {
		t.Error("a bad address is taken")
	}
}

func ExampleClient_Follow() {
	ctx := context.Background()
	c := &leat.Client{URL: "http://127.0.0.1:31337"}
	conversation, err := c.Create(ctx, leat.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ack, err := c.Send(ctx, conversation.ID, "What is 6 * 7?")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.Follow(ctx, conversation.ID, func(u leat.Update) error {
		fmt.Println(u.Transcript.Visible(ack.Turn))
		if turn := u.Transcript.Turn(ack.Turn); turn != nil && !turn.Unfinished() {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}

// A call that is told to wait for a long time fails at once instead of blocking.
func TestNoRepeatsWhenItIsLate(t *testing.T) {
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Retry-After", "42")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"error":"no more","reason":"rate_limited","rejected":true,"retryAfter":41500}`)
	}))
	defer srv.Close()
	c := &leat.Client{URL: srv.URL, HTTP: srv.Client()}
	_, err := c.Send(t.Context(), "c", "hi")
	var e *leat.Error
	if !errors.As(err, &e) || e.Reason != "rate_limited" || e.RetryAfter != 42*time.Second || !e.Temporary() || calls != 1 {
		t.Errorf("%+v after %d calls", err, calls)
	}
}
