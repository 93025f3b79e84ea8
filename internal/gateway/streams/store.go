package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/keylock"
	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// maxIdle is how many unused streams stay in memory. Each takes about a kilobyte, and saves the next request two
	// reads.
	maxIdle = 1024
	// maxStreams is how many streams a user may have.
	maxStreams = 10_000
	// maxPath is the length of the longest path, in bytes.
	maxPath = 1024
	// MaxAppend is the size of the largest append, in bytes. It is held in memory while it is written.
	MaxAppend = 16 << 20
)

// logs is the part of the journal that the store uses.
type logs interface {
	Append(ctx context.Context, b journal.Batch) error
	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
	Conversation(ctx context.Context, id string) (journal.Summary, error)
	Get(ctx context.Context, key string) ([]byte, error)
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error)
	Compact(ctx context.Context, conversation string, upto int64) error
	Delete(ctx context.Context, conversation string) error
}

// Store creates, changes and deletes streams. Its methods may be called from several goroutines.
type Store struct {
	journal logs
	gw      *gateway.Gateway
	log     *slog.Logger
	// By key of a stream, and by owner: held while it is loaded or changed.
	locks keylock.Locks
	// Ids of logs to compact.
	compactions chan string
	// Keys of streams whose fork has expired.
	orphans chan string
	// Keys of streams whose lifetime begins again.
	renewals chan string

	mu sync.Mutex
	// By key.
	loaded map[string]*state
	// Streams of the users whose streams were counted.
	counts map[quota.Account]int

	// Of subscriptions. The watch and the key are protected by mu.
	watch watch
	// Capacity 1.
	kicked chan struct{}
	// Nil until it is needed.
	key              *signingKey
	public, loopback *http.Client
	// One for each webhook that is being sent.
	slots      chan struct{}
	deliveries sync.WaitGroup
}

// New returns a store of the streams in a journal. It doesn't access the journal yet.
func New(gw *gateway.Gateway, j logs, log *slog.Logger) *Store {
	return &Store{
		journal: j, gw: gw, log: log, compactions: make(chan string, 256), orphans: make(chan string, 256), renewals: make(chan string, 256), loaded: map[string]*state{}, counts: map[quota.Account]int{},
		kicked: make(chan struct{}, 1), slots: make(chan struct{}, deliveryLimit),
		public: outbound.New(outbound.Options{}), loopback: outbound.New(outbound.Options{AllowPrivate: true}),
	}
}

// state is a stream in memory. Only the holder of its lock in Store.locks changes it.
type state struct {
	// Of a loaded state; protected by Store.mu.
	users int

	mu    sync.Mutex
	about description
	// Seq of the last event of the log.
	head    int64
	changed chan struct{}
	// promise is the deadline that clients were promised, epoch milliseconds; about.Deadline is what is stored.
	promise int64
	// readers counts those that follow the stream. A stream that is read doesn't expire.
	readers int
	// err is why the state can't be used any more: errReplaced, ErrGone or gateway.ErrNotFound.
	err error

	// Nil until a producer appends.
	producers map[string]producerState
	// Events since the log was compacted.
	unmerged int
}

// load returns a stream, which the caller releases. The caller holds the stream's lock.
func (s *Store) load(ctx context.Context, key string) (*state, error) {
	if st := s.use(key); st != nil {
		return st, nil
	}
	value, err := s.journal.Get(ctx, key)
	if err != nil {
		return nil, gateway.JournalError("look up stream", err)
	}
	// The head is that of the journal, which after a restore is above the last event.
	st := &state{changed: make(chan struct{}), users: 1}
	if err := json.Unmarshal(value, &st.about); err != nil {
		return nil, fmt.Errorf("streams: description: %w", err)
	}
	summary, err := s.journal.Conversation(ctx, st.about.ID)
	if err != nil {
		return nil, gateway.JournalError("look up stream", err)
	}
	st.head, st.promise = summary.Head, st.about.Deadline
	s.cache(key, st)
	return st, nil
}

// use returns a stream that is in memory, or nil.
func (s *Store) use(key string) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.loaded[key]
	if st != nil {
		st.users++
	}
	return st
}

// cache adds a stream to those in memory, and removes unused ones if there are too many.
func (s *Store) cache(key string, st *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded[key] = st
	if len(s.loaded) <= maxIdle {
		return
	}
	for k, other := range s.loaded {
		if other.users == 0 && other.isSaved() {
			delete(s.loaded, k)
		}
		if len(s.loaded) <= maxIdle*3/4 {
			return
		}
	}
}

// isSaved reports whether the stream can be read again as it is. The deadline of one that was just read may not be
// stored yet.
func (st *state) isSaved() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.promise <= st.about.Deadline
}

// release ends the use of a stream.
func (s *Store) release(st *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.users--
}

// drop removes a stream from memory and tells its readers why.
func (s *Store) drop(st *state, err error) {
	st.mu.Lock()
	key := st.about.key()
	if st.err == nil {
		st.err = err
		close(st.changed)
	}
	st.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded[key] == st {
		delete(s.loaded, key)
	}
}

// open loads a stream for a change or a read, unless it was deleted or has expired. The caller holds its lock.
func (s *Store) open(ctx context.Context, key string) (*state, error) {
	st, err := s.load(ctx, key)
	if err != nil {
		return nil, err
	}
	switch {
	case st.about.IsDeleted:
		err = ErrGone
	case st.isExpired(time.Now()):
		err = s.remove(ctx, st, gateway.Principal{}, "expire")
		if err == nil {
			err = st.err // it was dropped
			s.offer(s.orphans, st.about.sourceKey())
		} else if isHeld(err) {
			err = ErrGone // the data stays, and so the path can't be used for another stream
		}
	default:
		return st, nil
	}
	s.release(st)
	return nil, err
}

// isExpired reports whether the lifetime that clients were promised has ended.
func (st *state) isExpired(at time.Time) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.promise != 0 && at.UnixMilli() >= st.promise && (st.readers == 0 || !st.about.HasTTL)
}

// tail returns the position after the last event. The caller holds mu, or the lock of the stream.
func (st *state) tail() int64 { return st.about.Base + st.head }

// change is what a commit writes.
type change struct {
	// Nil if it stays as it is.
	about    *description
	payloads []*payload
	keys     []journal.KeyValue
}

// commit writes a change of a stream in one commit, and then wakes the readers. The caller holds the lock of the
// stream. If the result of the commit is unknown, the state is dropped, so that the next request reads what is
// stored.
func (s *Store) commit(ctx context.Context, st *state, c change) error {
	b := journal.Batch{Conversation: st.about.ID, Expected: st.head, Keys: c.keys, Events: events(st.head, c.payloads)}
	if c.about != nil {
		entry, err := c.about.entry()
		if err != nil {
			return err
		}
		b.Keys = append(b.Keys, entry)
	}
	// A full disk is the only failure after which the stream is certainly as it was.
	if err := s.journal.Append(ctx, b); err != nil {
		switch {
		case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted):
			s.drop(st, gateway.ErrNotFound)
		case !errors.Is(err, journal.ErrFull):
			s.drop(st, errReplaced) // it may have been stored
		}
		return gateway.JournalError("write stream", err)
	}
	// Readers get the data, the description and a close at the same moment, as they were committed.
	st.mu.Lock()
	if c.about != nil {
		st.about = *c.about
	}
	st.head += int64(len(c.payloads))
	close(st.changed)
	st.changed = make(chan struct{})
	st.unmerged += len(c.payloads)
	isGrown := st.unmerged >= compactAfter || st.about.IsClosed && st.unmerged > 0
	if isGrown {
		st.unmerged = 0
	}
	st.mu.Unlock()
	if len(c.payloads) > 0 {
		s.appended(st.about.owner(), st.about.Path)
	}
	if isGrown {
		s.offer(s.compactions, st.about.ID)
	}
	return nil
}

// events returns the events of payloads that follow a seq.
func events(after int64, payloads []*payload) (list []event.Event) {
	at := time.Now().UnixMilli()
	for i, p := range payloads {
		list = append(list, event.Event{
			Seq: after + int64(i) + 1, At: at, Type: event.Record, Body: &event.Body{RecordKind: p.kind, Data: p.data},
		})
	}
	return list
}

// isOpenTo returns an error if a principal may not do an action with its own streams. Turns' tokens have none.
func isOpenTo(p gateway.Principal, action gateway.Action) error {
	return gateway.Decide(p, action, nil)
}
