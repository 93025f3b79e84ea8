// Encoding a batch in its caller's goroutine, and the part of the writer's transaction that stores it.

package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// batch is a journal.Batch prepared for the writer. It is encoded in the goroutine of its caller. Requests are pooled with
// their buffers, because an append per token would otherwise produce garbage of the same size.
type batch struct {
	conversation string
	expected     int64
	events       int64 // number of events
	blob         []byte
	keys         []journal.KeyValue
	summary      *summary
	create       bool
	terminal     bool
}

// summary holds the columns of the conversations table that come from a journal.Summary. The index columns are aliases, and
// everything readable is in the sealed JSON.
type summary struct {
	updated       int64
	tenant, owner string // aliases
	unfinished    int
	json          []byte
}

// requests is a pool of Append requests and their buffers.
var requests = sync.Pool{New: func() any { return &request{batch: &batch{}, result: make(chan error, 1)} }}

// maxKept limits the buffers that return to the pool, in bytes.
const maxKept = 256 << 10

// Append implements [journal.Journal]. The batch is encoded here, in the caller's goroutine, so that the writer, which all
// conversations share, only seals and stores it.
func (j *Journal) Append(ctx context.Context, b journal.Batch) error {
	r, err := newRequest(ctx, &b)
	if err != nil {
		return err
	}
	err = j.queue.do(ctx, r)
	// A request that was withdrawn is still in the queue, so it must not be reused.
	if r.state.Load() == stateTaken {
		r.recycle()
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", b.Conversation, err)
	}
	return nil
}

// AppendAsync implements [journal.AsyncAppender].
func (j *Journal) AppendAsync(b journal.Batch, report func(error)) error {
	r, err := newRequest(background, &b)
	if err != nil {
		return err
	}
	r.report = report
	if err := j.queue.push(r); err != nil {
		return fmt.Errorf("append to %s: %w", b.Conversation, err)
	}
	return nil
}

// newRequest returns a request for a valid batch, unless ctx has ended.
func newRequest(ctx context.Context, b *journal.Batch) (*request, error) {
	if err := cmp.Or(b.Validate(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	r := requests.Get().(*request)
	if err := r.batch.encode(b); err != nil {
		return nil, fmt.Errorf("append to %s: %w", b.Conversation, err)
	}
	r.size = len(r.batch.blob) + 256
	r.state.Store(stateWaiting)
	return r, nil
}

// recycle returns a request to the pool.
func (r *request) recycle() {
	if cap(r.batch.blob) <= maxKept {
		r.batch.keys, r.batch.summary, r.report = nil, nil, nil
		requests.Put(r)
	}
}

// encode fills b from a batch, reusing b's buffer. It retains the batch's keys but not its events.
func (b *batch) encode(of *journal.Batch) error {
	blob, err := compact.Encode(b.blob[:0], of.Events)
	if err != nil {
		return err
	}
	*b = batch{
		conversation: of.Conversation, expected: of.Expected, events: int64(len(of.Events)), blob: blob,
		keys: of.Keys, create: of.Create, terminal: of.Terminal,
	}
	if of.Summary != nil {
		b.summary, err = newSummary(of.Conversation, *of.Summary)
	}
	return err
}

// newSummary encodes a summary. The fields that the journal maintains are cleared, because the columns of the row have the
// current values.
func newSummary(id string, s journal.Summary) (*summary, error) {
	s.ID, s.Epoch, s.Head, s.Compacted, s.Trimmed = id, "", 0, 0, 0
	data, err := json.Marshal(&s)
	if err != nil {
		return nil, fmt.Errorf("summary: %w", err)
	}
	return &summary{updated: s.Updated, tenant: alias(s.Tenant), owner: alias(s.Owner), unfinished: len(s.Open), json: data}, nil
}

// append adds a batch to the transaction. If the log refuses the batch, it returns an error and leaves the transaction as it
// was. Several batches of one log in a transaction become one chunk, so each sees the head that the earlier ones left.
func (t *tx) append(b *batch) error {
	// The owners are checked first, because create below already writes rows.
	if err := t.findOwners(b); err != nil {
		return err
	}
	l, p, err := t.find(b.conversation)
	switch {
	// The order of the cases matters: an id that exists is never fenced, and a deleted one can't be created again.
	case b.create && err == nil:
		return journal.ErrExists
	case b.create && errors.Is(err, journal.ErrNotFound):
		if b.expected != 0 {
			return fmt.Errorf("head is 0, not %d: %w", b.expected, journal.ErrFenced)
		}
		if l, p, err = t.create(b.conversation, b.summary); err != nil {
			return err
		}
	case err != nil:
		return err
	case b.expected != p.head:
		return fmt.Errorf("head is %d, not %d: %w", p.head, b.expected, journal.ErrFenced)
	}
	// A created log has its summary from create.
	if b.summary != nil && !b.create {
		p.summary = b.summary
	}
	if b.events > 0 {
		if p.batches == nil {
			// The first batch with events begins the chunk; the later ones of the transaction extend it.
			p.chunk.firstSeq = p.head + 1
			t.beginTerm(l, p)
		}
		p.batches = append(p.batches, b)
		p.head += b.events
		p.chunk.lastSeq = p.head
	}
	// Only the last write of a key in a transaction is stored. order keeps the keys in the order of their first write.
	for _, kv := range b.keys {
		if _, repeated := t.puts[kv.Key]; !repeated {
			t.order = append(t.order, kv.Key)
		}
		of := l
		if kv.Log != "" {
			of, _, _ = t.find(kv.Log) // it was found above, or is l
		}
		t.puts[kv.Key] = keyWrite{kv, of}
	}
	return nil
}

// findOwners checks, before anything is written, that the logs which own the batch's keys exist.
func (t *tx) findOwners(b *batch) error {
	for _, kv := range b.keys {
		if kv.Log != "" && kv.Log != b.conversation {
			if _, _, err := t.find(kv.Log); err != nil {
				return fmt.Errorf("log %s of a key: %w", kv.Log, err)
			}
		}
	}
	return nil
}
