//go:build unix

package killer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/transcript"
)

const (
	// leaseTime is the lease of a pushed turn. It is longer than any restart of the program takes.
	leaseTime = 10 * time.Second
	// calmLimit limits the time of the last turns after the last kill.
	calmLimit = 5 * time.Minute
)

// demoPrompts have deterministic answers.
var demoPrompts = []string{"?", "status", "tools", "long 120", "count to 12", "What is 12 * (3 + 4) / 5?"}

// TestKillerStorm ends the program repeatedly while twenty conversations stream, some of them pushed.
func TestKillerStorm(t *testing.T) {
	kills := 2 // of each kind
	if os.Getenv("LEAT_FULL") != "" {
		kills = 50
	}
	w := newWorld(t)
	w.trace.add("seed %d", w.seed)
	t.Logf("seed %d", w.seed)
	callbacks := write(t, "callbacks.ndjson", script(0))
	openclaw, err := filepath.Abs(filepath.Join("..", "..", "dialect", "openclaw", "testdata", "2026.9.6", "multi.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w.program = newProgram(t, filepath.Join(t.TempDir(), "data"),
		"--agent", "demo?speed=6",
		"--agent", "callbacks=replay:"+callbacks+"?dialect=eliza-actions",
		"--agent", "openclaw=replay:"+openclaw+"?dialect=openclaw&speed=6",
	)
	w.program.env = append(w.program.env, "LEAT_LEASE="+leaseTime.String())
	w.client = &leat.Client{URL: w.program.url()}
	if err := w.program.start(w.ctx); err != nil {
		t.Fatalf("%v\n%s", err, w.program.said())
	}

	demos := make([]*answer, len(demoPrompts))
	for i, p := range demoPrompts {
		a := demoed(t, p)
		demos[i] = &a
	}
	script0, recorded := played(t, "eliza-actions", callbacks), played(t, "openclaw", openclaw)

	readers := map[string][]reader{}
	reading, stopReading := context.WithCancel(w.ctx)
	defer stopReading()
	var users []func()
	for i := range 20 {
		id := fmt.Sprintf("c%02d", i)
		agent := []string{"demo", "callbacks", "openclaw", "push", "push"}[i%5]
		create := leat.CreateOptions{ID: id}
		if agent != "push" {
			create.Agent = agent
		}
		if _, err := w.client.Create(w.ctx, create); err != nil {
			t.Fatal(err)
		}
		rs := []reader{&rawViewer{seen: newSeen(w, id+"/raw"), conversation: id, rng: w.rng(id + "/raw")}}
		if i%3 == 0 {
			rs = append(rs, &clientViewer{seen: newSeen(w, id+"/client"), conversation: id})
		}
		readers[id] = rs
		for _, r := range rs {
			w.tasks.Go(func() { r.run(reading) })
		}
		talk := &talker{w: w, conversation: id, rng: w.rng(id)}
		switch agent {
		case "demo":
			talk.prompts, talk.answers = demoPrompts, demos
		case "callbacks":
			talk.prompts, talk.answers = []string{"play"}, []*answer{&script0}
		case "openclaw":
			talk.prompts, talk.answers = []string{"go"}, []*answer{&recorded}
		case "push":
			p := &producer{w: w, conversation: id, rng: w.rng(id), leaves: i == 4}
			p.dialect, p.body = "eliza-actions", script
			if i%2 == 0 {
				p.dialect, p.body = "anthropic", model
			}
			p.expect = func(_ int, body []byte) *answer {
				a := pushed(t, p.dialect, body)
				return &a
			}
			users = append(users, func() { p.run(rs[0]) })
			continue
		}
		users = append(users, func() { talk.run(rs[0]) })
	}
	done := make(chan struct{})
	busy := make(chan struct{}, len(users))
	for _, u := range users {
		w.tasks.Go(func() { u(); busy <- struct{}{} })
	}
	go func() {
		defer close(done)
		for range users {
			<-busy
		}
	}()

	storm(t, w, kills)
	close(w.calm)
	select {
	case <-done:
	case <-w.ctx.Done():
	case <-time.After(calmLimit):
		w.fail("turns are still running %s after the last kill:%s", calmLimit, unfinished(readers))
	}
	caughtUp(w, readers)
	stopReading()
	if err := w.program.end(syscall.SIGTERM); err != nil {
		w.fail("%v", err)
	}
	w.report()
	audit(t, w, readers)
}

// storm kills the program at random times and restarts it.
func storm(t *testing.T, w *world, each int) {
	rng := w.rng("storm")
	var signals []syscall.Signal
	for range each {
		signals = append(signals, syscall.SIGKILL, syscall.SIGTERM)
	}
	rng.Shuffle(len(signals), func(i, j int) { signals[i], signals[j] = signals[j], signals[i] })
	var slowest time.Duration
	for i, sig := range signals {
		if !w.pause(200*time.Millisecond + time.Duration(rng.Int64N(int64(1200*time.Millisecond)))) {
			return
		}
		w.trace.add("%d: %v", i+1, sig)
		begin := time.Now()
		if err := w.program.end(sig); err != nil {
			w.fail("%d: %v", i+1, err)
			return
		}
		took := time.Since(begin)
		if rng.IntN(3) == 0 && !w.pause(time.Duration(rng.Int64N(int64(400*time.Millisecond)))) {
			return
		}
		if err := w.program.start(w.ctx); err != nil {
			w.fail("%d: %v", i+1, err)
			return
		}
		w.trace.add("%d: gone in %.2f s, ready again", i+1, took.Seconds())
		t.Logf("%d: %v at %.2f s, gone in %.2f s, ready again after %.2f s", i+1, sig, begin.Sub(w.trace.begin).Seconds(), took.Seconds(), time.Since(begin).Seconds()-took.Seconds())
		slowest = max(slowest, took)
	}
	t.Logf("%d kills in %.1f s, the slowest end took %.2f s", len(signals), time.Since(w.trace.begin).Seconds(), slowest.Seconds())
}

// caughtUp waits until every reader has the position of the most advanced reader of its conversation.
func caughtUp(w *world, readers map[string][]reader) {
	ctx, cancel := context.WithTimeout(w.ctx, calmLimit)
	defer cancel()
	for id, rs := range readers {
		head, err := headOf(ctx, w, id)
		if err != nil && w.ctx.Err() != nil {
			return // it has failed already
		}
		if err != nil {
			w.fail("%s: %v", id, err)
			return
		}
		for _, r := range rs {
			for {
				news := r.changed()
				if _, seq := r.at(); seq >= head {
					break
				}
				select {
				case <-news:
					continue
				case <-ctx.Done():
				}
				_, seq := r.at()
				w.fail("%s: has read up to %d; the log is at %d", r.name(), seq, head)
				return
			}
		}
	}
}

// headOf returns the head that a new reader of the conversation gets.
func headOf(ctx context.Context, w *world, id string) (head int64, err error) {
	err = w.client.Stream(ctx, id, leat.StreamOptions{}, func(f *leat.Frame) error {
		if f.Type != "snapshot" {
			return nil
		}
		head = f.Transcript.Seq
		return leat.ErrStop
	})
	return head, err
}

func unfinished(readers map[string][]reader) string {
	var b strings.Builder
	for id, rs := range readers {
		rs[0].view(func(t *transcript.Transcript) {
			for _, q := range t.Turns {
				if q.Unfinished() {
					fmt.Fprintf(&b, " %s/%s (%s)", id, q.ID, q.State)
				}
			}
		})
	}
	return b.String()
}

// audit opens the data folder after the storm and compares the logs with everything that readers and senders received.
func audit(t *testing.T, w *world, readers map[string][]reader) {
	j, err := sqlite.Open(sqlite.Options{Dir: w.program.data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	turns, outcomes := 0, map[event.Outcome]int{}
	for id, rs := range readers {
		r, err := j.Read(t.Context(), id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		log := &transcript.Transcript{}
		ends := map[string]int{}
		for i := range r.Events {
			e := &r.Events[i]
			if err := log.Apply(e); err != nil {
				t.Fatalf("%s: log, seq %d: %v", id, e.Seq, err)
			}
			if e.Type == event.TurnEnd {
				ends[e.Turn]++
			}
		}
		if log.LateEvents > 0 {
			t.Errorf("%s: %d events after the end of their turn", id, log.LateEvents)
		}
		for _, q := range log.Turns {
			turns++
			outcomes[q.Outcome]++
			if ends[q.ID] != 1 {
				t.Errorf("%s: turn %s has %d ends in the log", id, q.ID, ends[q.ID])
			}
			if w.expected[id][q.ID] == nil {
				t.Errorf("%s: turn %s (%s) was never acknowledged", id, q.ID, q.Outcome)
			}
		}
		for turn, a := range w.expected[id] {
			if err := a.check(log, turn); err != nil {
				t.Errorf("%s: turn %s: %v", id, turn, err)
			}
		}
		want := document(log)
		for _, reader := range rs {
			epoch, seq := reader.at()
			if epoch != r.Epoch || seq > r.Head {
				t.Errorf("%s: at %s.%d, but the log is at %s.%d", reader.name(), epoch, seq, r.Epoch, r.Head)
			}
			reader.view(func(tr *transcript.Transcript) {
				if got := document(tr); !bytes.Equal(got, want) {
					t.Errorf("%s: transcript differs from the log:\n%s", reader.name(), difference(string(got), string(want)))
				}
			})
		}
	}
	if turns == 0 || outcomes[event.Completed] == 0 {
		t.Errorf("%d turns, %v: too few to test anything", turns, outcomes)
	}
	t.Logf("%d turns: %v", turns, outcomes)
}
