package native_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// faulty is a journal whose commits fail on demand.
type faulty struct {
	journal.Journal
	err atomic.Pointer[error]
	met chan struct{} // gets a value when a commit fails, if it has room
}

func (f *faulty) fail(err error) { f.err.Store(&err) }
func (f *faulty) heal()          { f.err.Store(nil) }

func (f *faulty) Append(ctx context.Context, b journal.Batch) error {
	if err := f.err.Load(); err != nil {
		select {
		case f.met <- struct{}{}:
		default:
		}
		return *err
	}
	return f.Journal.Append(ctx, b)
}

func (f *faulty) Healthy() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Journal.Healthy()
}

// After a commit with an unknown result, the gateway reads the log again. Readers stay connected, keep what they have, and see
// the turn end as interrupted.
func TestWriterLost(t *testing.T) {
	j := &faulty{Journal: memory.New()}
	texts, a := teller()
	h := newHarness(t, options{agent: a, journal: j})
	id := h.create()
	e, r := h.events(id), &reader{t: t}
	c, s := h.greeted(), &reader{t: t}
	c.send(`{"type":"subscribe","conversation":%q}`, id)
	ack := h.send(id, "go")
	texts <- "seen"
	seen := func(r *reader) func() bool { return func() bool { return strings.HasSuffix(r.text(), "seen") } }
	e.until(r, seen(r))
	c.until(s, id, seen(s))

	j.fail(journal.ErrUnknown)
	texts <- ", never committed"
	status, b := h.do("POST", "/api/conversations/"+id+"/commands", `{"type":"update","title":"x"}`, "")
	for status == 200 { // until the writer has met the error
		status, b = h.do("POST", "/api/conversations/"+id+"/commands", `{"type":"update","title":"x"}`, "")
	}
	if status != 503 || !strings.Contains(string(b), server.ReasonUnavailable) {
		t.Errorf("a command while commits fail: %d %s", status, b)
	}
	j.heal()
	over := func(r *reader) func() bool { return func() bool { return r.state(ack.Turn) == "ended" } }
	e.until(r, over(r))
	c.until(s, id, over(s))
	for what, r := range map[string]*reader{"stream": r, "socket": s} {
		if turn := r.fold.Turn(ack.Turn); r.text() != "user: go\nassistant: seen" || turn.Outcome != "interrupted" {
			t.Errorf("%s: %q, %+v", what, r.text(), turn)
		}
	}
}

// A full disk hides events that are not durable. When there is room again, none of them is missing.
func TestDiskFull(t *testing.T) {
	j := &faulty{Journal: memory.New(), met: make(chan struct{}, 1)}
	texts, a := teller()
	h := newHarness(t, options{agent: a, journal: j})
	id := h.create()
	e, r := h.events(id), &reader{t: t}
	ack := h.send(id, "go")
	texts <- "before"
	e.until(r, func() bool { return strings.HasSuffix(r.text(), "before") })
	j.fail(journal.ErrFull)
	texts <- ", during"
	<-j.met
	if got := h.folded(id).text(); got != "user: go\nassistant: before" {
		t.Errorf("shown while the disk is full: %q", got)
	}
	j.heal()
	texts <- ", after"
	close(texts)
	e.until(r, func() bool { return r.state(ack.Turn) == "ended" })
	if r.text() != "user: go\nassistant: before, during, after" || r.resets != 1 {
		t.Errorf("%q, %d resets", r.text(), r.resets)
	}
}
