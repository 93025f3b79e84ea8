package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// conversations implements agent.Sessions for one conversation: it skips entries that it already has, and observes runs in
// progress.
type conversations struct {
	t    *testing.T
	a    *gatewayAgent
	kept json.RawMessage
	own  []string      // ids of its turns and messages
	slow time.Duration // delay of each Add
	late time.Duration // delay before a run is observed
	adds func(key string)

	tasks sync.WaitGroup
	mu    sync.Mutex
	keys  map[string]bool
	shown []string // messages, and the texts of runs, in order
	at    json.RawMessage
	runs  map[string]*turnHost
}

func (c *conversations) List(context.Context) ([]agent.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []agent.Session{{Conversation: "C1", Session: c.kept, Cursor: c.at}}, nil
}

func (c *conversations) Next(ctx context.Context) (agent.Session, error) {
	<-ctx.Done()
	return agent.Session{}, ctx.Err()
}

func (c *conversations) Add(ctx context.Context, _ string, entries []agent.Entry, at json.RawMessage) error {
	if len(entries) > 0 {
		time.Sleep(c.slow)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
	for _, e := range entries {
		if c.keys[e.Key] || slices.Contains(c.own, e.Key) {
			continue
		}
		c.keys[e.Key] = true
		if c.adds != nil {
			c.adds(e.Key)
		}
		if e.Message != nil {
			c.shown = append(c.shown, string(e.Message.Role)+" ("+e.Source+"): "+e.Message.Text)
			continue
		}
		from := ""
		if e.Source != "" {
			from = " from " + e.Source
		}
		h := newTurnHost(c.t, "")
		h.id, h.in = "observed "+e.Key, agent.Input{Conversation: "C1", Turn: "observed " + e.Key, Key: e.Key, Session: c.kept}
		h.mapper = dialect.NewMapper(h.id, h.newID)
		h.add(event.Event{Type: event.TurnStart, Turn: h.id, Body: &event.Body{Agent: "claw"}})
		c.runs[e.Key] = h
		if e.Run.Ops != nil {
			c.shown = append(c.shown, "run "+e.Run.Answers+" whole"+from)
			if err := h.Emit(ctx, e.Run.Ops, nil); err != nil {
				c.t.Error(err)
			}
			continue
		}
		c.shown = append(c.shown, "run "+e.Run.Answers+" live"+from)
		h.out = agent.NewEmitter(ctx, h)
		c.tasks.Go(func() {
			time.Sleep(c.late)
			h.end(c.a.Observe(ctx, h.in, e.Run.State, h.out))
		})
	}
	return nil
}

func (c *conversations) run(key string) *turnHost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[key]
}

func (c *conversations) checkLog(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.shown, want) {
		t.Errorf("shown\n%q, want\n%q", c.shown, want)
	}
}

// followSession runs a test while Follow runs in the background.
func followSession(t *testing.T, play func(*fakeRun), test func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, reconnect func())) {
	bubble(t, 4, play, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		c := &conversations{t: t, a: a, kept: mustJSON(storedSession{theirs}), keys: map[string]bool{}, runs: map[string]*turnHost{}}
		var ctx context.Context
		var cancel context.CancelFunc
		done := make(chan error, 1)
		start := func() {
			ctx, cancel = context.WithCancel(t.Context())
			go func() { done <- a.Follow(ctx, c) }()
			synctest.Wait()
		}
		stop := func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Follow returns %v", err)
			}
			c.tasks.Wait()
		}
		start()
		test(t, f, a, c, func() { stop(); start() })
		stop()
	})
}

// addPrompt sends a message as another client.
func (f *fakeGateway) addPrompt(key, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, rerr := f.begin(nil, theirs, text, key, "", nil); rerr != nil {
		f.t.Error(rerr)
	}
}

// addNote injects a note into the session.
func (f *fakeGateway) addNote(text string) {
	f.mu.Lock()
	s := f.sessions[theirs]
	row := textContent(text)
	row["role"], row["timestamp"] = "assistant", time.Now().UnixMilli()
	s.append(row, map[string]any{})
	id := row["timestamp"]
	f.mu.Unlock()
	f.eachConn(func(c *fakeConn) {
		c.event("chat", map[string]any{"runId": "inject-note", "sessionKey": theirs, "seq": 0, "state": "final", "message": textContent(text), "at": id})
	})
}

// Messages, runs and notes of another client are shown once: live, after a reconnect and after a restart.
func TestFollow(t *testing.T) {
	followSession(t, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, reconnect func()) {
		f.addPrompt("r1", "one?")
		time.Sleep(time.Second)
		if h := c.run("r1"); h == nil || h.visible() == "" {
			t.Fatal("the run is not shown while it runs")
		}
		time.Sleep(10 * time.Second)
		f.addNote("a note")
		time.Sleep(time.Second)
		f.dropConnections()
		f.addPrompt("r2", "two?")
		time.Sleep(30 * time.Second)
		reconnect()
		time.Sleep(time.Second)
		c.checkLog(t, "user (): one?", "run r1:user live", "assistant (inject): a note", "user (): two?", "run r2:user live")
		for _, key := range []string{"r1", "r2"} {
			h := c.run(key)
			h.checkTurn(t, event.Completed, "Let me look.\n\nThere is a file.")
			if tools := h.parts(event.KindTool); len(tools) != 1 || tools[0].Text(event.Output) != "a file" {
				t.Errorf("%d tools are shown", len(tools))
			}
		}
	})
}

// Activity while Leat was disconnected is shown afterwards, in order.
func TestFollowAfterReconnect(t *testing.T) {
	followSession(t, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, reconnect func()) {
		f.addPrompt("r1", "one?")
		time.Sleep(10 * time.Second)
		f.mu.Lock()
		f.down = true
		f.mu.Unlock()
		f.dropConnections()
		f.addPrompt("r2", "two?")
		time.Sleep(10 * time.Second)
		f.addNote("a note")
		f.addPrompt("r3", "three?")
		time.Sleep(10 * time.Second)
		f.restart()
		time.Sleep(time.Minute)
		c.checkLog(t, "user (): one?", "run r1:user live", "user (): two?", "run r2:user whole", "assistant (inject): a note", "user (): three?", "run r3:user whole")
		for _, key := range []string{"r2", "r3"} {
			c.run(key).checkTurn(t, event.Completed, "Let me look.\n\nThere is a file.")
			c.run(key).checkOrder(t, "reasoning I had better look.", "text Let me look.", "tool a file", "text There is a file.")
		}
	})
}

// A history may lack rows that were written while it was read. Its run in progress then answers another message than the newest
// one.
func TestFollowStaleHistory(t *testing.T) {
	followSession(t, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, _ func()) {
		f.mu.Lock()
		f.down = true
		f.mu.Unlock()
		f.dropConnections()
		f.addPrompt("r1", "one?")
		time.Sleep(20 * time.Second)
		f.mu.Lock()
		f.rowLimits = []int{1} // the message alone
		f.onHistory = sync.OnceFunc(func() { f.addPrompt("r2", "two?") })
		f.mu.Unlock()
		f.restart()
		time.Sleep(time.Minute)
		c.checkLog(t, "user (): one?", "run r1:user whole", "user (): two?", "run r2:user live")
		for _, key := range []string{"r1", "r2"} {
			c.run(key).checkTurn(t, event.Completed, "Let me look.\n\nThere is a file.")
		}
	})
}

// A run of another client that ended while the connection was lost is recorded before the answer to a later message, even if
// the connection is lost again meanwhile.
func TestFollowCatchesUpBeforeItAnswers(t *testing.T) {
	const turn = "019aab00-0000-7000-8000-000000000001"
	for _, reconnect := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost again: %v", reconnect), func(t *testing.T) {
			followSession(t, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, _ func()) {
				c.slow = 2 * time.Second
				f.mu.Lock()
				f.down = true
				f.mu.Unlock()
				f.dropConnections()
				f.addPrompt("r1", "their question")
				time.Sleep(10 * time.Second)
				h := newTurnHost(t, "hello")
				h.id, h.in.Turn, h.in.Key, h.session = turn, turn, turn, c.kept
				h.mapper = dialect.NewMapper(h.id, h.newID)
				h.add(event.Event{Type: event.TurnStart, Turn: h.id, Body: &event.Body{Agent: "claw"}})
				c.mu.Lock()
				c.own = []string{turn, "m1"}
				c.mu.Unlock()
				over := make(chan error, 1)
				go func() { over <- h.runUntil(t.Context(), a, nil) }()
				time.Sleep(time.Second)
				f.restart()
				for begun := false; reconnect && !begun; time.Sleep(10 * time.Millisecond) {
					f.mu.Lock()
					begun = f.sessions[theirs].inFlight != nil
					f.mu.Unlock()
				}
				if reconnect {
					time.Sleep(500 * time.Millisecond) // the entries before the answer are being recorded
					f.dropConnections()
				}
				for h.visible() == "" {
					time.Sleep(10 * time.Millisecond)
				}
				c.checkLog(t, "user (): their question", "run r1:user whole")
				if err := <-over; err != nil {
					t.Fatal(err)
				}
				h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
			})
		})
	}
}

// A run without content at the time of a disconnect is shown before the run that started after it, whether that is a turn of
// Leat or another client's run, and even if Observe is called late.
func TestFollowShowsAnswersInOrder(t *testing.T) {
	const turn = "019aab00-0000-7000-8000-000000000001"
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("our own: %v", own), func(t *testing.T) {
			followSession(t, func(r *fakeRun) {
				r.wait(500 * time.Millisecond)
				r.final("1", "Answer to "+r.params["message"].(string))
			}, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, _ func()) {
				c.late = 6 * time.Second
				over := make(chan error, 1)
				var first *turnHost
				if own {
					first = newTurnHost(t, "one?")
					first.id, first.in.Turn, first.in.Key, first.session = turn, turn, turn, c.kept
					first.mapper = dialect.NewMapper(first.id, first.newID)
					first.add(event.Event{Type: event.TurnStart, Turn: first.id, Body: &event.Body{Agent: "claw"}})
					c.own = []string{turn, "m1"}
					go func() { over <- first.runUntil(t.Context(), a, nil) }()
				} else {
					f.addPrompt("r1", "one?")
					over <- nil
				}
				time.Sleep(100 * time.Millisecond)
				if !own {
					f.addNote("a note") // with it the run is found
					time.Sleep(100 * time.Millisecond)
					first = c.run("r1")
				}
				f.mu.Lock()
				f.down = true
				f.mu.Unlock()
				f.dropConnections()
				time.Sleep(time.Second)
				f.addPrompt("r2", "two?")
				time.Sleep(time.Second)
				c.mu.Lock()
				c.adds = func(key string) {
					if key == "r2" && first.visible() == "" {
						t.Error("the second answer is recorded before the first has begun")
					}
				}
				c.mu.Unlock()
				begin := time.Now()
				f.restart()
				for c.run("r2") == nil {
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(begin); own && took >= catchUpLimit {
					t.Errorf("they waited for each other, %v", took)
				}
				time.Sleep(time.Minute)
				if err := <-over; err != nil {
					t.Fatal(err)
				}
				first.checkTurn(t, event.Completed, "Answer to one?")
				c.run("r2").checkTurn(t, event.Completed, "Answer to two?")
			})
		})
	}
}

// A turn's answer is shown after that of an earlier run of another client, even if that run is observed late.
func TestFollowAnswersAfterARunInProgress(t *testing.T) {
	const turn = "019aab00-0000-7000-8000-000000000001"
	followSession(t, func(r *fakeRun) {
		r.wait(500 * time.Millisecond)
		r.final("1", "Answer to "+r.params["message"].(string))
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, _ func()) {
		c.late = 3 * time.Second
		f.addPrompt("r1", "one?")
		time.Sleep(100 * time.Millisecond)
		f.addNote("a note") // with it the run is found
		time.Sleep(time.Second)
		h := newTurnHost(t, "two?")
		h.id, h.in.Turn, h.in.Key, h.session = turn, turn, turn, c.kept
		h.mapper = dialect.NewMapper(h.id, h.newID)
		h.add(event.Event{Type: event.TurnStart, Turn: h.id, Body: &event.Body{Agent: "claw"}})
		c.mu.Lock()
		c.own = []string{turn, "m1"}
		c.mu.Unlock()
		over := make(chan error, 1)
		go func() { over <- h.runUntil(t.Context(), a, nil) }()
		for h.visible() == "" {
			time.Sleep(10 * time.Millisecond)
		}
		if c.run("r1").visible() == "" {
			t.Error("the second answer is shown before the first has begun")
		}
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Answer to two?")
		time.Sleep(time.Minute)
		c.run("r1").checkTurn(t, event.Completed, "Answer to one?")
	})
}

// Messages and answers of Leat's own turns are not recorded again, including those of a turn that was queued.
func TestFollowSkipsOwnTurns(t *testing.T) {
	const turn = "019aab00-0000-7000-8000-000000000001"
	followSession(t, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, reconnect func()) {
		f.addPrompt("r1", "their question")
		h := newTurnHost(t, "hello")
		h.id, h.in.Turn, h.in.Key, h.session = turn, turn, turn, c.kept
		h.mapper = dialect.NewMapper(h.id, h.newID)
		h.add(event.Event{Type: event.TurnStart, Turn: h.id, Body: &event.Body{Agent: "claw"}})
		c.mu.Lock()
		c.own = []string{turn, "m1"}
		c.mu.Unlock()
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
		time.Sleep(10 * time.Second)
		reconnect()
		time.Sleep(time.Second)
		c.checkLog(t, "user (): their question", "run r1:user live")
		if h := c.run("r1"); h == nil || h.turn().Outcome != event.Completed {
			t.Error("their run is not shown to its end")
		}
	})
}

// Follow reads few rows of a long session, and more only after an absence in which more rows were written.
func TestFollowLongSession(t *testing.T) {
	followSession(t, func(r *fakeRun) {
		r.speak("1", "Yes, ")
		r.wait(500 * time.Millisecond)
		r.final("1", "Yes, "+r.params["message"].(string))
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, reconnect func()) {
		var want []string
		addPrompts := func(from, to int) {
			for i := from; i < to; i++ {
				f.addPrompt(fmt.Sprint("r", i), fmt.Sprint("question ", i))
				time.Sleep(time.Second)
			}
		}
		checkTexts := func(from, to int, message string) {
			for i := from; i < to; i++ {
				want = append(want, fmt.Sprint("user (): question ", i), fmt.Sprintf("run r%d:user %s", i, message))
			}
		}
		largest := func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			n := slices.Max(f.limits)
			f.limits = nil
			return n
		}
		addPrompts(0, 1)
		largest()
		addPrompts(1, 60)
		checkTexts(0, 60, "live")
		c.checkLog(t, want...)
		if n := largest(); n > endRows {
			t.Errorf("%d rows are read at once for one run", n)
		}
		f.mu.Lock()
		f.down = true
		f.mu.Unlock()
		f.dropConnections()
		addPrompts(60, 100)
		f.restart()
		time.Sleep(time.Minute)
		checkTexts(60, 100, "whole")
		c.checkLog(t, want...)
		if n := largest(); n != historyRows {
			t.Errorf("%d rows are read after an absence of 80 rows, want %d", n, historyRows)
		}
	})
}

// A file of a run that ended while Leat was disconnected is shown once, by its name, with the error that it was not copied.
func TestFollowUncopiedFile(t *testing.T) {
	block := map[string]any{"type": "image", "artifactId": "art-1", "url": "/api/chat/media/outgoing/x/1/full", "alt": "pic.png", "mimeType": "image/png"}
	for _, tt := range []struct {
		name, text string
		block      map[string]any
	}{
		{"in its row", "Here.", block},
		{"in its text", "Here.\nMEDIA:/srv/claw/ws/pic.png", nil},
		{"in both", "Here.\nMEDIA:/srv/claw/ws/pic.png", block},
		{"alone", "", block},
	} {
		t.Run(tt.name, func(t *testing.T) { checkUncopiedFile(t, tt.text, tt.block) })
	}
}

func checkUncopiedFile(t *testing.T, text string, block map[string]any) {
	t.Helper()
	said, _, _ := strings.Cut(text, "\n")
	followSession(t, func(r *fakeRun) {
		row := textContent(text)
		row["role"], row["stopReason"] = "assistant", "stop"
		if block != nil {
			row["content"] = append(row["content"].([]any), block)
		}
		r.addRows(row)
		r.end("final", map[string]any{"message": textContent(said)})
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, reconnect func()) {
		f.mu.Lock()
		f.down = true
		f.mu.Unlock()
		f.dropConnections()
		f.addPrompt("r1", "a picture?")
		time.Sleep(time.Second)
		f.restart()
		time.Sleep(time.Minute)
		c.checkLog(t, "user (): a picture?", "run r1:user whole")
		h := c.run("r1")
		h.checkTurn(t, event.Completed, said)
		files := h.parts(event.KindMedia)
		if len(files) != 1 || files[0].Media.Name != "pic.png" || files[0].Media.URL != "" || files[0].Error == nil || files[0].Error.Code != codeFile || !files[0].Final {
			t.Errorf("files: %+v", files)
		}
	})
}
