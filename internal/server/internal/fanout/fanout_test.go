package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/fanout"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is an agent that is a function.
type script func(context.Context, agent.Input, *agent.Emitter) error

func (s script) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return s(ctx, in, out)
}

var admin = gateway.Principal{Admin: true}

// site is a gateway with one conversation and a pool of viewers.
type site struct {
	t    *testing.T
	gw   *gateway.Gateway
	pool *fanout.Pool
	id   string

	metrics *server.ViewerMetrics
}

func newSite(t *testing.T, a agent.Agent, heartbeat time.Duration) *site {
	t.Helper()
	gw, err := gateway.New(gateway.Config{
		Journal: memory.New(), Agents: gateway.Agents{"a": {Agent: a, Kind: "script"}}, DefaultAgent: "a",
		Settings: gateway.Settings{Drain: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, gw: gw, pool: fanout.New(heartbeat, map[feed.Encoding][]byte{feed.JSON: []byte("beat")}), id: c.ID, metrics: server.NewMetrics().Viewers("test")}
}

// client is the other end of a viewer.
type client struct {
	site *site
	v    *fanout.Viewer
	// Of a hundred frames, how many the connection doesn't take at once.
	slow int

	mu     sync.Mutex
	full   bool
	frames [][]byte
	// The cause.
	ended chan error
}

// view starts a viewer at a cursor.
func (s *site) view(p gateway.Principal, after feed.Cursor, slow int) *client {
	s.t.Helper()
	r, err := s.gw.Feed(s.t.Context(), p, s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &client{site: s, slow: slow, ended: make(chan error, 2)}
	c.v = s.pool.NewViewer(fanout.Options{Reader: r, Cursor: after, Encoding: feed.JSON, Sink: c, Measured: s.metrics.Open()})
	c.v.Start()
	return c
}

func (c *client) End(cause error, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		bytes -= int64(len(f))
	}
	if bytes != 0 {
		c.site.t.Errorf("%d bytes more than were sent", bytes)
	}
	c.ended <- cause
}

// TryWrite takes, keeps or refuses frames at random. While a frame is kept, all others are refused.
func (c *client) TryWrite(frame []byte) (outgoing.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		return outgoing.Busy, nil
	}
	if rand.IntN(100) >= c.slow {
		c.frames = append(c.frames, frame)
		return outgoing.Complete, nil
	}
	c.full = true
	state := outgoing.Busy
	if rand.IntN(2) == 0 {
		c.frames = append(c.frames, frame)
		state = outgoing.Pending
	}
	go func() {
		for range rand.IntN(50) {
			runtime.Gosched()
		}
		c.mu.Lock()
		c.full = false
		c.mu.Unlock()
		c.v.Ready()
	}()
	return state, nil
}

// fold returns what the frames add up to, and how many were heartbeats.
func (c *client) fold() (t *transcript.Transcript, beats int) {
	c.site.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	t = &transcript.Transcript{}
	for _, raw := range c.frames {
		if string(raw) == "beat" {
			beats++
			continue
		}
		f, err := feed.ParseFrame(raw)
		if err != nil {
			c.site.t.Fatalf("%v: %s", err, raw)
		}
		if err := f.Apply(t); err != nil {
			c.site.t.Fatalf("%v: %s", err, raw)
		}
	}
	return t, beats
}

// say runs a turn to its end.
func (s *site) say(text string) {
	s.t.Helper()
	f, err := s.gw.Feed(s.t.Context(), admin, s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Release()
	ack, err := s.gw.Do(s.t.Context(), admin, s.id, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		s.t.Fatal(err)
	}
	for {
		changed, isOver := f.Notify(), false
		f.View(func(t *transcript.Transcript) {
			turn := t.Turn(ack.Turn)
			isOver = turn != nil && turn.State == transcript.TurnEnded
		})
		if isOver {
			return
		}
		<-changed
	}
}

// shown returns the JSON of a transcript.
func shown(t *testing.T, tr *transcript.Transcript) string {
	t.Helper()
	b, err := tr.Snapshot(0).AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wait polls until the condition holds: the viewers are served by goroutines that nothing else announces.
func (s *site) wait(what string, condition func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			s.t.Fatalf("timed out: %s", what)
		}
	}
}

// Viewers of any speed join and leave at any time. Each ends with exactly the transcript of the log.
func TestStorm(t *testing.T) {
	const viewers, words = 700, 300 // more viewers than a group has
	var s *site
	clients := make([]*client, viewers)
	var joining sync.WaitGroup
	s = newSite(t, script(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		for i := range words {
			if err := out.Text(fmt.Sprintf("word %d, ", i)); err != nil {
				return err
			}
			if i%7 == 0 {
				runtime.Gosched()
			}
		}
		return nil
	}), time.Hour)
	for i := range clients {
		start := func() { clients[i] = s.view(admin, "", []int{0, 0, 5, 50, 90}[i%5]) }
		if i%2 == 0 {
			start()
		} else {
			joining.Go(func() {
				for range rand.IntN(2000) {
					runtime.Gosched()
				}
				start()
			})
		}
	}
	s.say("go")
	joining.Wait()
	f, err := s.gw.Feed(t.Context(), admin, s.id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	var want string
	f.View(func(tr *transcript.Transcript) { want = shown(t, tr) })
	for i, c := range clients {
		s.wait(fmt.Sprint("viewer ", i), func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.frames) == 0 {
				return false
			}
			last, err := feed.ParseFrame(c.frames[len(c.frames)-1])
			return err == nil && last.Seq == f.Head()
		})
		if got, _ := c.fold(); shown(t, got) != want {
			t.Fatalf("viewer %d: got %s\nwant %s", i, shown(t, got), want)
		}
	}
	end := errors.New("test")
	for _, c := range clients {
		c.v.Cancel(end)
		c.v.Cancel(errors.New("later"))
	}
	for _, c := range clients {
		if err := <-c.ended; err != end {
			t.Error(err)
		}
		if len(c.ended) > 0 {
			t.Error("ended twice")
		}
	}
}

// After an interval of silence each viewer gets a heartbeat, and none while there are batches.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, script(func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text("hi") }), 16*time.Second)
		c, other := s.view(admin, "", 0), s.view(admin, "", 0)
		beats := func() int {
			_, n := c.fold()
			if _, m := other.fold(); n != m {
				t.Errorf("%d and %d heartbeats", n, m)
			}
			return n
		}
		time.Sleep(14 * time.Second)
		if n := beats(); n != 0 {
			t.Errorf("%d heartbeats after 14 s", n)
		}
		time.Sleep(2500 * time.Millisecond)
		if n := beats(); n != 1 {
			t.Errorf("%d heartbeats after 16.5 s", n)
		}
		s.say("hello")
		time.Sleep(14 * time.Second)
		if n := beats(); n != 1 {
			t.Errorf("%d heartbeats 14 s after a batch", n)
		}
		time.Sleep(50 * time.Second)
		if n := beats(); n != 5 { // each up to a second early
			t.Errorf("%d heartbeats 64 s after a batch", n)
		}
		c.v.Cancel(nil)
		other.v.Cancel(nil)
		time.Sleep(time.Minute) // the timer ends
	})
}

// do runs a command of the admin.
func (s *site) do(c gateway.Command) {
	s.t.Helper()
	if _, err := s.gw.Do(s.t.Context(), admin, s.id, c); err != nil {
		s.t.Fatal(err)
	}
}

// A viewer that may no longer read ends with the reason and gets nothing of what follows. Others continue until the conversation is deleted.
func TestAccessLost(t *testing.T) {
	s := newSite(t, script(func(_ context.Context, in agent.Input, out *agent.Emitter) error { return out.Text("an answer") }), time.Hour)
	guest := gateway.Principal{Subject: "guest"}
	s.do(gateway.Command{Type: gateway.CommandShare, Subject: "guest", Access: gateway.AccessRead})
	c, other := s.view(admin, "", 0), s.view(guest, "", 0)
	s.say("one")
	s.wait("the guest gets the turn", func() bool { tr, _ := other.fold(); return len(tr.Messages) == 2 })
	s.do(gateway.Command{Type: gateway.CommandUnshare, Subject: "guest"})
	s.say("a secret")
	if err := <-other.ended; !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("the guest's viewer ended with %v", err)
	}
	if tr, _ := other.fold(); len(tr.Messages) != 2 {
		t.Errorf("the guest got %d messages", len(tr.Messages))
	}
	s.wait("the other viewer continues", func() bool { tr, _ := c.fold(); return len(tr.Messages) == 4 })
	s.do(gateway.Command{Type: gateway.CommandDelete})
	if err := <-c.ended; !errors.Is(err, feed.ErrDeleted) && !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("the viewer of a deleted conversation ended with %v", err)
	}
}

// Goroutines are needed only while there is something to write.
func TestNoGoroutines(t *testing.T) {
	s := newSite(t, script(func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text("hi") }), time.Hour)
	before := runtime.NumGoroutine()
	clients := make([]*client, 1000)
	for i := range clients {
		clients[i] = s.view(admin, "", 0)
	}
	s.say("hello")
	s.wait("all workers end", func() bool { return runtime.NumGoroutine() <= before+10 })
	for _, c := range clients {
		c.v.Cancel(fanout.ErrDisconnected)
		if err := <-c.ended; err != fanout.ErrDisconnected {
			t.Error(err)
		}
	}
}
