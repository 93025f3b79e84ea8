package sqlite

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"modernc.org/sqlite/lib"

	"github.com/leat-dev/leat/internal/store/journal"
)

var background = context.Background() // the writer never abandons a transaction

// write is the writer's goroutine. Only it uses j.conn and changes the file and the index, so transactions need no lock. It ends when the
// queue is closed and empty.
//
// All requests that are queued when a commit ends form the group of the next transaction. With a slow disk the groups grow, and so does the
// number of events per sync. Garbage is deleted only after idleAfter without requests, because it would delay a commit.
func (j *Journal) write() {
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	var pressure pressure
	for {
		if pressure.isHigh() && j.queue.isShort() {
			time.Sleep(gatherFor)
		}
		group, closed := j.queue.take()
		if closed {
			return
		}
		if len(group) > 0 {
			pressure.begin(len(group), time.Now())
			j.commit(group)
			pressure.end(time.Now())
			continue
		}
		// Idle work is skipped if there is no garbage, and while commits fail, because on a full disk the deletes would fail too.
		if j.waste.n == 0 || j.health.get() != nil {
			<-j.queue.wake
			continue
		}
		idle.Reset(idleAfter)
		select {
		case <-j.queue.wake:
		case <-idle.C:
			if err := j.clearUp(); err != nil {
				j.log.Warn("journal: clear up", "error", err)
				j.noteOutcome(j.classify("clear up", err))
			}
		}
	}
}

const (
	// gatherFor is how long the writer waits for more requests before a commit, under load. A commit costs as much CPU time as ten chunks
	// of text, most of it for the sync, so fewer and larger commits are worth half a millisecond of latency.
	gatherFor = 500 * time.Microsecond
	// minExpected is the number of requests that must be expected in gatherFor.
	minExpected = 2
	// shortQueue is the number of queued requests from which waiting for more saves little.
	shortQueue = 32
)

// pressure measures the writer's load, to decide whether it waits for more requests.
type pressure struct {
	beganAt, endedAt time.Time // the last commit
	rate             float64   // requests in a nanosecond that had to wait for a commit with others, averaged over the last commits
}

// begin counts the n requests of a commit. One request isn't counted: a caller that sends its next request after the result of
// the last one would only wait longer for it.
func (p *pressure) begin(n int, at time.Time) {
	p.rate += (float64(n-1)/float64(max(1, at.Sub(p.beganAt))) - p.rate) / 4
	p.beganAt = at
}

// end notes the end of a commit.
func (p *pressure) end(at time.Time) { p.endedAt = at }

// isHigh reports whether enough requests are expected in gatherFor. It is false after a pause, and if commits are quicker than
// the wait, as without syncs.
func (p *pressure) isHigh() bool {
	return p.rate*float64(gatherFor) >= minExpected && p.endedAt.Sub(p.beganAt) > gatherFor/2 && time.Since(p.endedAt) < gatherFor
}

// commit executes requests in one transaction. If the disk is full, it releases the ballast and commits the batches that end
// turns in a second one. Every request gets exactly one result, whatever fails: a caller of Append waits for it without a timeout.
//
// After a commit with an unknown result, the file is reopened before the next transaction. While the ballast is released, only batches that
// end turns are accepted, until the disk has space for a new ballast.
func (j *Journal) commit(group []*request) {
	// Pauses run first, because they need a moment without an open transaction.
	group = j.pauses(group)
	if len(group) == 0 {
		return
	}
	if j.needsReopen {
		if err := j.reopen(); err != nil {
			answer(group, nil, fmt.Errorf("reopen: %w", err))
			return
		}
	}
	if j.reserve.released && !j.reserve.restore() {
		var nonTerminal []*request
		if group, nonTerminal = terminals(group); len(nonTerminal) > 0 {
			answer(nonTerminal, nil, fmt.Errorf("the remaining space is reserved for ending turns: %w", journal.ErrFull))
		}
		if len(group) == 0 {
			return
		}
	}
	results, err := j.try(group)
	// The whole group failed. The batches that end turns get a second attempt with the space of the ballast.
	if errors.Is(err, journal.ErrFull) && !j.reserve.released {
		if ends, nonTerminal := terminals(group); len(ends) > 0 && j.reserve.release() {
			j.log.Warn("journal: the disk is full; releasing the reserve to end turns", "batches", len(ends))
			answer(nonTerminal, nil, err)
			group = ends
			if results, err = j.try(ends); err == nil {
				answer(group, results, nil)
				j.health.swap(journal.ErrFull) // the other batches still fail
				return
			}
		}
	}
	j.noteOutcome(err)
	answer(group, results, err)
}

// noteOutcome records the result of a transaction. If it is unknown, the file is reopened, so that readers see what is on the
// disk. Only a change between success and failure is logged.
func (j *Journal) noteOutcome(err error) {
	if j.reserve.released && err == nil {
		err = journal.ErrFull
	}
	if was := j.health.swap(err); (was == nil) != (err == nil) {
		if err != nil {
			j.log.Error("journal: commits are failing", "error", err)
		} else {
			j.log.Info("journal: commits succeed again")
		}
	}
	if !errors.Is(err, journal.ErrUnknown) {
		return
	}
	j.needsReopen = true
	if err := j.reopen(); err != nil {
		j.log.Error("journal: reopen", "error", err)
	}
}

// pauses runs the requests that run between transactions and returns the others. They run first, in the order of the queue,
// while no transaction is open.
func (j *Journal) pauses(group []*request) []*request {
	writes := group[:0]
	for _, r := range group {
		if r.pause == nil {
			writes = append(writes, r)
			continue
		}
		r.answer(r.pause())
	}
	return writes
}

// terminals separates the requests that end turns from the others.
func terminals(group []*request) (ends, nonTerminal []*request) {
	for _, r := range group {
		if r.batch != nil && r.batch.terminal {
			ends = append(ends, r)
		} else {
			nonTerminal = append(nonTerminal, r)
		}
	}
	return ends, nonTerminal
}

// answer sends the results: the group's error if there is one, else each request's own result.
func answer(group []*request, results []error, err error) {
	for i, r := range group {
		if err == nil {
			r.answer(results[i])
		} else {
			r.answer(err)
		}
	}
}

// try runs one transaction. If it returns an error, nothing of the group was stored, or the error wraps [journal.ErrUnknown].
// Otherwise each request has its own result. Batches come before operations, and the rows of all batches are written together,
// because inserts of many rows are cheaper than single ones.
func (j *Journal) try(group []*request) ([]error, error) {
	t := j.begin()
	results := make([]error, len(group))
	if err := j.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return nil, j.classify("begin", err)
	}
	added := 0
	for i, r := range group {
		if r.batch != nil && t.err == nil {
			results[i] = t.append(r.batch)
		}
	}
	for _, l := range t.logs {
		if l.pending.batches != nil {
			added++
		}
	}
	// Deleting first lets the new rows reuse the freed pages.
	t.collect(added)
	t.writeLive()
	t.writeSummaries()
	t.writeKeys()
	for i, r := range group {
		if r.op != nil && t.err == nil {
			results[i] = r.op(t)
			t.bytes += r.size
		}
	}
	if t.err != nil {
		t.forget()
		return nil, j.undo(t.err)
	}
	j.crash("before-commit")
	if err := j.finish(); err != nil {
		t.forget()
		if errors.Is(err, journal.ErrUnknown) {
			return nil, err
		}
		return nil, j.undo(err)
	}
	j.crash("after-commit-before-ack")
	// The commit is durable from here on, so everything in memory may change.
	t.apply()
	j.checkpointer.addWritten(t.bytes)
	return results, nil
}

// finish commits. If it isn't known whether the commit was stored, the error wraps [journal.ErrUnknown].
func (j *Journal) finish() error {
	err := j.fault("commit")
	if err == nil {
		err = j.conn.exec("COMMIT")
	}
	if err == nil {
		err = j.fault("committed")
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_OK:
		if err == nil {
			return nil
		}
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY: // the commit's last frame was not written
		return err
	}
	return fmt.Errorf("commit: %w: %w", journal.ErrUnknown, err)
}

// undo rolls back a failed transaction and returns the cause. After some errors SQLite has already rolled back. If that failed,
// the state of the connection is unknown, and the next commit reopens the file.
func (j *Journal) undo(cause error) error {
	if err := j.conn.exec("ROLLBACK"); err != nil && code(err) != sqlite3.SQLITE_ERROR {
		j.needsReopen = true
		j.log.Error("journal: roll back", "error", err)
	}
	return j.classify("write", cause)
}

// full reports whether err means that the disk is full.
func full(err error) bool {
	return code(err)&0xff == sqlite3.SQLITE_FULL || code(err) == sqlite3.SQLITE_IOERR_SHMSIZE || errors.Is(err, syscall.ENOSPC)
}

// classify wraps a database error in the matching sentinel. The gateway decides by the sentinel whether to retry.
func (j *Journal) classify(op string, err error) error {
	if full(err) {
		return fmt.Errorf("%s: %w: %w", op, journal.ErrFull, err)
	}
	return fmt.Errorf("%s: %w", op, j.malformed(err))
}
