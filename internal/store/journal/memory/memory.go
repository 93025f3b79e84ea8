package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// Journal stores logs in memory. Use [New]; the zero value is not usable. A single lock protects everything: commits are only
// copies in memory, so finer locks would gain nothing.
type Journal struct {
	mu     sync.RWMutex // protects the fields below
	closed bool
	// Conversations that exist, by id.
	logs map[string]*log
	// Ids that can't be used again.
	deleted map[string]bool
	// Keys of all conversations, because keys are unique in the whole store.
	keys  map[string]value
	swept time.Time // time of the last sweep
}

var _ journal.Journal = (*Journal)(nil)

// log is the stored state of one conversation. The journal's lock protects it; a blob may be read without it.
type log struct {
	// The journal maintains Epoch, Head, Compacted and Trimmed. The other fields are those of the last batch with a summary.
	summary journal.Summary
	// Chunks of compacted events, ascending.
	compacted []compact.Row
	// Chunks as written, ascending; all of them end above summary.Compacted and summary.Trimmed.
	commits []commit
	// Traces of compacted turns, by turn.
	traces map[string]*trace
}

// commit is a live chunk: the events of one Append, as written. at is the time of the Append in epoch milliseconds, for traces.
type commit struct {
	compact.Row
	at int64
}

// trace is the trace of a turn. at is when it was stored, for its expiry.
type trace struct {
	journal.Trace
	at time.Time
}

// value is a stored key. conversation is its owner: the key is deleted with it. expires is in epoch milliseconds, or 0 for never.
type value struct {
	conversation string
	data         []byte
	expires      int64
}

// sweepEvery is the interval at which Append removes expired keys and traces. Reads ignore them already. It bounds the memory
// of expired entries without a scan on every commit.
const sweepEvery = time.Minute

// New returns an empty journal. It starts no goroutine, so an unused journal needs no Close.
func New() *Journal {
	return &Journal{logs: map[string]*log{}, deleted: map[string]bool{}, keys: map[string]value{}, swept: time.Now()}
}

// Append implements [journal.Journal]. All checks come before the first change, so a refused batch leaves no trace.
func (j *Journal) Append(ctx context.Context, b journal.Batch) error {
	if err := b.Validate(); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	blob, err := compact.Encode(nil, b.Events)
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	l, err := j.find(b.Conversation)
	if b.Create && errors.Is(err, journal.ErrNotFound) {
		l, err = &log{traces: map[string]*trace{}}, nil
		l.summary.Epoch = journal.NewEpoch()
	} else if b.Create && err == nil {
		err = journal.ErrExists
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", b.Conversation, err)
	}
	// Fencing: of two writers with the same Expected, only the first succeeds.
	if b.Expected != l.summary.Head {
		return fmt.Errorf("append to %s: head is %d, not %d: %w", b.Conversation, l.summary.Head, b.Expected, journal.ErrFenced)
	}
	// The owners of all keys are checked before anything is stored.
	for _, kv := range b.Keys {
		if kv.Log != "" && kv.Log != b.Conversation {
			if _, err := j.find(kv.Log); err != nil {
				return fmt.Errorf("append to %s: log %s of a key: %w", b.Conversation, kv.Log, err)
			}
		}
	}
	j.logs[b.Conversation] = l
	if b.Summary != nil {
		l.setSummary(b.Conversation, b.Summary)
	}
	if n := int64(len(b.Events)); n > 0 {
		l.commits = append(l.commits, commit{compact.Row{FirstSeq: b.Expected + 1, LastSeq: b.Expected + n, Blob: blob}, time.Now().UnixMilli()})
		l.summary.Head += n
	}
	for _, kv := range b.Keys {
		if kv.Value == nil {
			delete(j.keys, kv.Key)
			continue
		}
		j.keys[kv.Key] = value{cmp.Or(kv.Log, b.Conversation), bytes.Clone(kv.Value), kv.Expires}
	}
	j.sweep()
	return nil
}

// AppendAsync implements [journal.AsyncAppender].
func (j *Journal) AppendAsync(b journal.Batch, report func(error)) error {
	if err := b.Validate(); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	report(j.Append(context.Background(), b))
	return nil
}

// setSummary stores a summary but keeps the journal's own fields. The caller's summary may be stale in these fields, or contain
// anything.
func (l *log) setSummary(id string, s *journal.Summary) {
	previous := l.summary
	l.summary = clone(*s)
	l.summary.ID = id
	l.summary.Epoch, l.summary.Head, l.summary.Compacted, l.summary.Trimmed = previous.Epoch, previous.Head, previous.Compacted, previous.Trimmed
}

// clone copies a summary, so that callers and the journal don't share its slices and maps.
func clone(s journal.Summary) journal.Summary {
	s.Open = slices.Clone(s.Open)
	s.Metadata = maps.Clone(s.Metadata)
	for k, v := range s.Metadata {
		s.Metadata[k] = json.RawMessage(bytes.Clone(v))
	}
	return s
}

// find returns a conversation's log. The caller holds the lock. Deleted conversations are remembered forever, because their ids
// must not be used again.
func (j *Journal) find(id string) (*log, error) {
	switch l := j.logs[id]; {
	case j.closed:
		return nil, journal.ErrClosed
	case l != nil:
		return l, nil
	case j.deleted[id]:
		return nil, journal.ErrDeleted
	}
	return nil, journal.ErrNotFound
}

// use runs f with a conversation's log while it holds lock: the journal's lock, or its read side if f changes nothing. A context that
// has ended is refused first. A log in memory is never waited for, so ctx isn't checked again.
func (j *Journal) use(ctx context.Context, lock sync.Locker, id string, f func(*log) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lock.Lock()
	defer lock.Unlock()
	l, err := j.find(id)
	if err != nil {
		return err
	}
	return f(l)
}

// wrap adds the operation and what it was applied to to an error. It returns nil for nil.
func wrap(err error, operation, of string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", operation, of, err)
}

// sweep removes expired keys and traces, at most once in sweepEvery. The caller holds the lock. It runs with a commit instead
// of in a goroutine, so that a journal of a test needs no cleanup.
func (j *Journal) sweep() {
	at := time.Now()
	if at.Sub(j.swept) < sweepEvery {
		return
	}
	j.swept = at
	maps.DeleteFunc(j.keys, func(_ string, v value) bool { return v.expired(at) })
	for _, l := range j.logs {
		maps.DeleteFunc(l.traces, func(_ string, t *trace) bool { return t.expired(at) })
	}
}

// expired reports whether the key's expiry has passed. 0 means never.
func (v value) expired(at time.Time) bool  { return v.expires != 0 && v.expires <= at.UnixMilli() }
func (t *trace) expired(at time.Time) bool { return at.Sub(t.at) > journal.DefaultTraceRetention }

// Get implements [journal.Journal]. The value is a copy.
func (j *Journal) Get(ctx context.Context, key string) ([]byte, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := cmp.Or(ctx.Err(), j.healthy()); err != nil {
		return nil, wrap(err, "get", key)
	}
	v, ok := j.keys[key]
	if !ok || v.expired(time.Now()) {
		return nil, wrap(journal.ErrNotFound, "get", key)
	}
	return bytes.Clone(v.data), nil
}

// Keys implements [journal.Journal]. Expired keys that aren't swept yet are omitted.
func (j *Journal) Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := cmp.Or(ctx.Err(), j.healthy()); err != nil {
		return nil, wrap(err, "keys", prefix)
	}
	var pairs []journal.KeyValue
	at := time.Now()
	for k, v := range j.keys {
		if strings.HasPrefix(k, prefix) && !v.expired(at) {
			pairs = append(pairs, journal.KeyValue{Key: k, Value: bytes.Clone(v.data), Expires: v.expires})
		}
	}
	slices.SortFunc(pairs, func(a, b journal.KeyValue) int { return strings.Compare(a.Key, b.Key) })
	return pairs, nil
}

// KeysAfter implements [journal.Journal]. It sorts all keys with the prefix for every page.
func (j *Journal) KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error) {
	pairs, err := j.Keys(ctx, prefix)
	if err != nil {
		return nil, err
	}
	from := sort.Search(len(pairs), func(i int) bool { return pairs[i].Key > after })
	return pairs[from:min(from+limit, len(pairs))], nil
}

// Backup implements [journal.Journal]. It fails, because the journal has no file.
func (j *Journal) Backup(context.Context, string) error {
	return fmt.Errorf("backup of a journal in memory: %w", errors.ErrUnsupported)
}

// Healthy implements [journal.Journal]. Commits in memory can't fail, so the only reason is that the journal is closed.
func (j *Journal) Healthy() error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.healthy()
}

// healthy is Healthy for a caller that holds the lock.
func (j *Journal) healthy() error {
	if j.closed {
		return journal.ErrClosed
	}
	return nil
}

// Close implements [journal.Journal]. It discards all logs.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed, j.logs, j.keys, j.deleted = true, nil, nil, nil
	return nil
}
