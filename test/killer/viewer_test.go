//go:build unix

package killer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

// reader reads a conversation during the whole test.
type reader interface {
	name() string
	// run reads until ctx ends.
	run(ctx context.Context)
	// view passes the current transcript to its argument.
	view(fn func(t *transcript.Transcript))
	// changed is closed when the transcript changes.
	changed() <-chan struct{}
	// at returns the reader's position: seq and epoch.
	at() (epoch string, seq int64)
}

// seen is the state of every reader, with the violations that it has observed.
type seen struct {
	w     *world
	label string

	mu     sync.Mutex
	t      *transcript.Transcript
	cursor feed.Cursor
	ends   map[string]int64 // turn: seq of its end
	news   chan struct{}

	last    time.Time     // when something came
	running bool          // a turn was unfinished then
	silence time.Duration // the longest that nothing came while a turn was
}

func newSeen(w *world, label string) seen {
	return seen{w: w, label: label, t: &transcript.Transcript{}, ends: map[string]int64{}, news: make(chan struct{})}
}

func (s *seen) name() string { return s.label }

func (s *seen) view(fn func(*transcript.Transcript)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s.t)
}

func (s *seen) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

func (s *seen) at() (string, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch, seq, _ := s.cursor.Parse()
	return epoch, seq
}

// moved checks and sets a new position. The caller holds s.mu.
func (s *seen) moved(to feed.Cursor, reset bool, events []event.Event) {
	epoch, seq, ok := to.Parse()
	if !ok {
		s.w.fail("%s: cursor %q", s.label, to)
		return
	}
	if was, at, had := s.cursor.Parse(); had {
		switch {
		case reset:
			s.w.fail("%s: came back at %s and was reset to %s: what it has seen is not in the log", s.label, s.cursor, to)
		case epoch != was:
			s.w.fail("%s: the epoch changed from %s to %s", s.label, was, epoch)
		case seq < at:
			s.w.fail("%s: its position fell from %d to %d", s.label, at, seq)
		}
	}
	for i := range events {
		e := &events[i]
		if e.Type != event.TurnEnd {
			continue
		}
		if first, ok := s.ends[e.Turn]; ok && first != e.Seq {
			s.w.fail("%s: turn %s has two ends, at %d and %d", s.label, e.Turn, first, e.Seq)
		}
		s.ends[e.Turn] = e.Seq
	}
	if now := time.Now(); s.running {
		s.silence, s.last = max(s.silence, now.Sub(s.last)), now
	} else {
		s.last = now
	}
	s.running = slices.ContainsFunc(s.t.Turns, func(q *transcript.Turn) bool { return q.Unfinished() })
	s.cursor = to
	close(s.news)
	s.news = make(chan struct{})
}

// quiet returns the longest time without an event while a turn was unfinished.
func (s *seen) quiet() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silence
}

// rawViewer implements the protocol itself and breaks its connections anywhere, most often within a frame.
type rawViewer struct {
	seen
	conversation string
	rng          *rand.Rand
	patience     int // how much longer than usual it lets a connection live, so that it gets a large frame in the end
}

func (v *rawViewer) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := v.connect(ctx)
		if err != nil && !errors.Is(err, errCut) && ctx.Err() == nil {
			v.w.trace.add("%s: %v", v.label, err)
		}
		select {
		case <-time.After(10*time.Millisecond + time.Duration(v.rng.IntN(40))*time.Millisecond):
		case <-ctx.Done():
		}
	}
}

var errCut = errors.New("cut by the viewer itself")

func (v *rawViewer) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.w.program.url()+"/api/conversations/"+v.conversation+"/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	v.mu.Lock()
	if v.cursor != "" {
		req.Header.Set("Last-Event-ID", string(v.cursor))
	}
	v.mu.Unlock()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	left := (2000 + v.rng.IntN(60_000)) << v.patience // bytes until it cuts the connection
	v.mu.Lock()
	before := v.cursor
	v.mu.Unlock()
	var r sse.Reader
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		n = min(n, left)
		left -= n
		if ferr := r.Feed(buf[:n], v.frame); ferr != nil {
			v.w.fail("%s: %v", v.label, ferr)
			return ferr
		}
		if left == 0 {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.patience++; v.cursor != before {
				v.patience = 0
			}
			return errCut
		}
		if err != nil {
			return err
		}
	}
}

func (v *rawViewer) frame(e sse.Event) error {
	var kind struct{ Type string }
	if err := json.Unmarshal(e.Data, &kind); err != nil {
		return fmt.Errorf("frame %q: %w", e.Data, err)
	}
	if kind.Type != "snapshot" && kind.Type != "batch" {
		return nil
	}
	f, err := feed.ParseFrame(e.Data)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.ID != string(f.Cursor) {
		return fmt.Errorf("frame with id %q has cursor %q", e.ID, f.Cursor)
	}
	if err := f.Apply(v.t); err != nil {
		return fmt.Errorf("batch after %s does not apply: %w: %s", v.cursor, err, e.Data)
	}
	v.moved(f.Cursor, f.Reset, f.Events)
	return nil
}

// clientViewer follows through the Go client.
type clientViewer struct {
	seen
	conversation string
}

func (v *clientViewer) run(ctx context.Context) {
	err := v.w.client.FollowWith(ctx, v.conversation, leat.FollowOptions{
		OnDisconnect: func(err error, _ time.Duration) { v.w.trace.add("%s: %v", v.label, err) },
	}, func(u leat.Update) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if u.Connected {
			return nil
		}
		// The client's own is live only during this call.
		if u.Reset {
			v.t.Reset(u.Transcript.Snapshot(0))
		}
		for i := range u.Events {
			if err := v.t.Apply(&u.Events[i]); err != nil {
				v.w.fail("%s: %v", v.label, err)
			}
		}
		if a, b := document(u.Transcript), document(v.t); u.Reset && !bytes.Equal(a, b) {
			v.w.fail("%s: the client's transcript is not what its events say", v.label)
		}
		v.moved(feed.Cursor(u.Cursor), u.Reset, u.Events)
		return nil
	})
	if ctx.Err() == nil {
		v.w.fail("%s: the client gave up: %v", v.label, err)
	}
}

// document returns a transcript as JSON, for comparison.
func document(t *transcript.Transcript) []byte {
	b, err := t.Snapshot(0).AppendJSON(nil)
	if err != nil {
		return fmt.Appendf(nil, "no JSON: %v", err)
	}
	return b
}

// await blocks until a reader's transcript satisfies ok or ctx ends.
func await(ctx context.Context, r reader, ok func(*transcript.Transcript) bool) bool {
	for {
		news, good := r.changed(), false
		r.view(func(t *transcript.Transcript) { good = ok(t) })
		if good {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}

func ended(turn string) func(*transcript.Transcript) bool {
	return func(t *transcript.Transcript) bool {
		q := t.Turn(turn)
		return q != nil && !q.Unfinished()
	}
}
