package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// errStale says that a log has changed since something was prepared for it; it is prepared again.
var errStale = errors.New("stale")

// Compact implements [journal.Journal]. All work is done on a reader's connection, beside the writer, which only stores
// what came out of it.
func (j *Journal) Compact(ctx context.Context, conversation string, upto int64) error {
	for {
		err := j.compact(ctx, conversation, upto)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errStale):
			return fmt.Errorf("compact %s: %w", conversation, j.quarantine(err))
		}
	}
}

// settlement is what is stored of a log that was settled.
type settlement struct {
	from   view // what it was prepared from
	known  bool // whether the log was in memory
	n      int64
	upto   int64
	whole  bool
	rows   []compact.Row
	traces []encodedTrace
	size   int
}

type encodedTrace struct {
	turn  string
	first int64
	blob  []byte
}

func (j *Journal) compact(ctx context.Context, conversation string, upto int64) error {
	s := settlement{upto: upto}
	s.from, s.known = j.index.view(conversation, 0)
	r, l, err := j.prepare(ctx, conversation, &s)
	if err != nil || s.upto == 0 {
		return err
	}
	if s.rows, err = compact.Rows(r.Events); err != nil {
		return err
	}
	for i := range s.rows {
		s.rows[i].Blob = l.secret.seal(nil, place{kind: inSettled, first: s.rows[i].First, last: s.rows[i].Last}, s.rows[i].Blob)
		s.size += len(s.rows[i].Blob)
	}
	for i := range r.Traces {
		t := &r.Traces[i]
		first := t.Commits[0].Seq
		s.traces = append(s.traces, encodedTrace{t.Turn, first, l.secret.seal(nil, place{kind: inTrace, first: first, name: t.Turn}, appendTrace(nil, t))})
		s.size += len(s.traces[i].blob)
	}
	s.whole = r.Whole
	return j.do(ctx, s.size, func(t *tx) error { return t.settle(conversation, &s) })
}

// prepare reads what is to be settled and compacts it. It sets upto to 0 where there is nothing to do.
func (j *Journal) prepare(ctx context.Context, conversation string, s *settlement) (compact.Result, *log, error) {
	l, events, commits, err := j.live(ctx, conversation, s)
	if err != nil || s.upto == 0 {
		return compact.Result{}, l, err
	}
	r, err := compact.Settle(events, commits, func() ([]event.Event, error) { return j.settled(ctx, conversation, l) })
	return r, l, err
}

// live reads what is not settled yet, up to a seq, and the commits that it came in.
func (j *Journal) live(ctx context.Context, conversation string, s *settlement) (*log, []event.Event, []compact.Commit, error) {
	type part struct {
		held
		blob   []byte
		sealed bool
	}
	if err := j.index.refuse(conversation); err != nil {
		return nil, nil, nil, err
	}
	var live []part
	var l *log
	err := j.read(ctx, func(c *conn) (err error) {
		if l, err = load(c, "id", conversation); err != nil {
			return err
		}
		if l == nil {
			return absent(c, conversation)
		}
		if s.known && (l.n != s.from.n || l.settled != s.from.state.settled || l.trimmed != s.from.state.trimmed) {
			return errStale
		}
		if !s.known {
			s.from.state = l.state
		}
		s.n, s.upto = l.n, min(s.upto, s.from.state.head)
		if s.upto <= l.settled {
			s.upto = 0
			return nil
		}
		chunks := s.from.chunks
		for i, ch := range chunks {
			if ch.first > s.upto {
				chunks = chunks[:i]
				break
			}
		}
		return liveRows(c, l.n, chunks, func(ch held, blob []byte, sealed bool) error {
			live = append(live, part{ch, blob, sealed})
			return nil
		})
	})
	if err != nil || s.upto == 0 {
		return l, nil, nil, err
	}
	var commits []compact.Commit
	var events []event.Event
	if n := len(live); n > 0 {
		events = make([]event.Event, 0, live[n-1].last-max(l.floor(), live[0].first-1))
	}
	for _, p := range live {
		if events, err = l.decode(events, p.blob, p.sealed, p.place(), l.floor()); err != nil {
			return nil, nil, nil, err
		}
		commits = append(commits, compact.Commit{At: p.at, Last: p.last})
	}
	return l, compact.UpTo(events, s.upto), commits, nil
}

// settled reads the settled part of a log that is in the given state.
func (j *Journal) settled(ctx context.Context, conversation string, l *log) (events []event.Event, err error) {
	err = j.read(ctx, func(c *conn) error {
		now, err := load(c, "id", conversation)
		if err != nil {
			return err
		}
		if now == nil || now.n != l.n || now.settled != l.settled || now.trimmed != l.trimmed {
			return errStale
		}
		return c.each("SELECT events, first, last FROM settled WHERE conversation = ? AND last > ? ORDER BY last", func(r row) (err error) {
			events, err = l.decode(events, r.blob(0), true, place{kind: inSettled, first: r.int(1), last: r.int(2)}, l.trimmed)
			return err
		}, l.n, l.trimmed)
	})
	return events, err
}

// settle stores a settlement, unless the log has changed meanwhile.
func (t *tx) settle(conversation string, s *settlement) error {
	l, p, err := t.find(conversation)
	if err != nil {
		return err
	}
	if l.n != s.n || (s.known && l != s.from.log) || p.settled != s.from.state.settled || p.trimmed != s.from.state.trimmed || p.rewrites != s.from.state.rewrites {
		return errStale
	}
	if s.whole {
		_ = t.exec("DELETE FROM settled WHERE conversation = ?", l.n)
		p.size = 0
	}
	for i, row := range s.rows {
		p.size += int64(len(row.Blob))
		_ = t.exec("INSERT INTO settled (conversation, last, first, events) VALUES (?, ?, ?, ?)", l.n, row.Last, row.First, row.Blob)
		if i == 0 {
			t.j.crash("mid-settle")
		}
	}
	for _, trace := range s.traces {
		_ = t.exec("INSERT OR REPLACE INTO traces (conversation, turn, first, at, trace) VALUES (?, ?, ?, ?, ?)", l.n, trace.turn, trace.first, t.at, trace.blob)
	}
	p.settled = s.upto
	return t.exec("UPDATE conversations SET settled = ?, size = ? WHERE n = ?", s.upto, p.size, l.n)
}

// Trim implements [journal.Journal]. What was trimmed is ignored from the first commit on, and then deleted piece by piece.
func (j *Journal) Trim(ctx context.Context, conversation string, upto int64) error {
	var n, floor int64
	err := j.do(ctx, 0, func(t *tx) error {
		l, p, err := t.find(conversation)
		if err != nil {
			return err
		}
		n, floor = l.n, max(p.trimmed, min(upto, p.head))
		if floor == p.trimmed {
			return nil
		}
		p.trimmed = floor
		if p.size, err = t.number("SELECT ifnull(sum(length(events)), 0) FROM settled WHERE conversation = ? AND last > ?", n, floor); err != nil {
			t.err = err
			return err
		}
		return t.exec("UPDATE conversations SET trimmed = ?, size = ? WHERE n = ?", floor, p.size, n)
	})
	if err == nil {
		err = j.slices(ctx, "DELETE FROM settled WHERE (conversation, last) IN (SELECT conversation, last FROM settled WHERE conversation = ? AND last <= ? ORDER BY last LIMIT 32)", n, floor)
	}
	if err != nil {
		return fmt.Errorf("trim %s: %w", conversation, err)
	}
	return nil
}

// slices runs a statement that changes a bounded number of rows again and again, each time in a transaction that it
// shares with what waits, until it changes none.
func (j *Journal) slices(ctx context.Context, query string, args ...any) error {
	for {
		var changed int64
		err := j.do(ctx, maxOps/2, func(t *tx) (err error) {
			changed, err = t.change(query, args...)
			return err
		})
		if err != nil || changed == 0 {
			return err
		}
	}
}
