package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// About are the properties of a stream.
type About struct {
	ID          string
	ContentType string
	// Seconds, if HasTTL is true.
	TTL       int64
	HasTTL    bool
	ExpiresAt string
	// Position after the last append.
	Tail int64
	// The same for all offsets of the stream.
	Tag      string
	IsClosed bool
}

// describe returns the properties of the stream now.
func (st *state) describe() About {
	st.mu.Lock()
	defer st.mu.Unlock()
	d := &st.about
	return About{
		ID: d.ID, ContentType: d.ContentType, TTL: d.TTL, HasTTL: d.HasTTL, ExpiresAt: d.ExpiresAt, Tail: st.tail(), Tag: d.Tag, IsClosed: d.IsClosed,
	}
}

// Reader reads one stream. Only one goroutine uses it. It is closed after use.
type Reader struct {
	store *Store
	key   string
	state *state
	isUse bool
}

// Open fails like a read would, so that a request gets its status before any data. The reader is for one request: after a change of
// access it isn't asked again, because a stream has one user only, whose credentials end the request. Open returns a reader of a stream. isUse says that the stream is read, which extends a sliding lifetime, and not
// only looked at.
func (s *Store) Open(ctx context.Context, p gateway.Principal, path string, isUse bool) (*Reader, error) {
	if err := isOpenTo(p, gateway.ActionRead); err != nil {
		return nil, err
	}
	r := &Reader{store: s, key: keyOf(p.Account(), path), isUse: isUse}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// load opens the stream, and extends its lifetime.
func (r *Reader) load(ctx context.Context) error {
	unlock, err := r.store.locks.Lock(ctx, r.key)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := r.store.open(ctx, r.key)
	if err != nil {
		return err
	}
	// The renewal comes before any data is sent: a client that gets data can rely on the lifetime.
	if r.isUse {
		if err := r.store.renew(ctx, st); err != nil {
			r.store.release(st)
			return err
		}
		st.mu.Lock()
		st.readers++
		st.mu.Unlock()
	}
	r.state = st
	return nil
}

// Close ends the use of the reader. A sliding lifetime begins now, for clients that come back soon.
func (r *Reader) Close() {
	if r.isUse {
		r.state.mu.Lock()
		r.state.readers--
		r.state.promise = max(r.state.promise, renewed(&r.state.about, time.Now()))
		isUnsaved := r.state.promise > r.state.about.Deadline && r.state.err == nil
		r.state.mu.Unlock()
		if isUnsaved {
			r.store.offer(r.store.renewals, r.key)
		}
	}
	r.store.release(r.state)
}

// About returns the properties of the stream now.
func (r *Reader) About() About { return r.state.describe() }

// Changed returns a channel that is closed when the stream changes next. It is called before Read.
func (r *Reader) Changed() <-chan struct{} {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.changed
}

// entry is one append as readers get it.
type entry struct {
	// The bytes, or the values without brackets around them.
	Data []byte
	// The position after it.
	At int64
}

// Read returns the appends after a position, about limit bytes of them, and the stream as of the same moment. After
// the last append it returns none. Fewer than all mean that the client has to read again.
func (r *Reader) Read(ctx context.Context, after int64, limit int) (list []entry, about About, err error) {
	for {
		r.state.mu.Lock()
		err, d := r.state.err, r.state.about
		r.state.mu.Unlock()
		switch {
		case errors.Is(err, errReplaced):
			old := *r
			if err := r.load(ctx); err != nil {
				return nil, about, err
			}
			old.Close()
			continue
		case err != nil:
			return nil, about, err
		case r.state.isExpired(time.Now()):
			return nil, about, gateway.ErrNotFound
		case d.IsDeleted:
			return nil, about, ErrGone
		}
		// The end is taken before the records are read. Later appends are left for the next call, so the
		// two fit together.
		about = r.state.describe()
		records, _, err := r.store.readRecords(ctx, &d, after, about.Tail, limit)
		if err != nil {
			return nil, about, err
		}
		for i := range records {
			data, err := content(&records[i].Event)
			if err != nil {
				return nil, about, err
			}
			list = append(list, entry{data, records[i].at})
		}
		return list, about, nil
	}
}

// record is an event of a stream with the position after it.
type record struct {
	event.Event
	at int64
}

// readRecords reads the records after a position and up to another one, from the logs that they are in. hasMore says
// that the limit was reached.
func (s *Store) readRecords(ctx context.Context, d *description, after, upto int64, limit int) (list []record, hasMore bool, err error) {
	// The journal's limit counts what is stored, and this one what is passed. Each read returns at least one record,
	// so every call progresses.
	for _, g := range append(d.Chain[:len(d.Chain):len(d.Chain)], segment{d.ID, d.Base, upto}) {
		last := min(g.End, upto)
		for after < last {
			r, err := s.journal.Read(ctx, g.Log, after-g.Start, limit)
			if err != nil {
				return nil, false, gateway.JournalError("read stream", err)
			}
			begin := after
			for i := range r.Events {
				at := g.Start + r.Events[i].Seq
				if at > last {
					break
				}
				list = append(list, record{r.Events[i], at})
				after = at
			}
			if limit -= readBytes(r.Events); limit <= 0 && len(list) > 0 {
				return list, true, nil
			}
			if !r.HasMore || after == begin {
				break // a restore leaves a gap before the next append
			}
		}
		after = max(after, last)
	}
	return list, false, nil
}

// readBytes returns about how many bytes events take.
func readBytes(events []event.Event) (n int) {
	for i := range events {
		n += len(events[i].Get().Data)
	}
	return n
}

// renewed returns the deadline of a stream that is used now, or 0 if its lifetime isn't sliding.
func renewed(d *description, at time.Time) int64 {
	if !d.HasTTL {
		return 0
	}
	return at.UnixMilli() + d.TTL*1000
}

// renew extends the sliding lifetime of a stream. It writes only when what is stored would end before. The caller
// holds the lock of the stream.
func (s *Store) renew(ctx context.Context, st *state) error {
	about := st.about
	deadline := renewed(&about, time.Now())
	if deadline > about.Deadline {
		about.Deadline = lease(deadline, about.TTL)
		if err := s.commit(ctx, st, change{about: &about}); err != nil {
			return err
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.promise = max(st.promise, deadline)
	return nil
}

// readProducers reads the producers of a stream. Their keys are digests, so the values have their names.
func (s *Store) readProducers(ctx context.Context, log string) (map[string]producerState, error) {
	producers := map[string]producerState{}
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, producerKeys+log+"/", "", keyPage) {
		if err != nil {
			return nil, gateway.JournalError("read producers", err)
		}
		var v storedProducer
		if err := json.Unmarshal(kv.Value, &v); err != nil {
			return nil, fmt.Errorf("streams: producer: %w", err)
		}
		producers[v.ID] = v.producerState
	}
	return producers, nil
}

// storedProducer is the value of a producer's key.
type storedProducer struct {
	ID string `json:"id"`
	producerState
}

// producerEntry returns the key of a producer's state.
func producerEntry(log, id string, state producerState) (journal.KeyValue, error) {
	b, err := json.Marshal(storedProducer{id, state})
	if err != nil {
		return journal.KeyValue{}, fmt.Errorf("streams: producer: %w", err)
	}
	return journal.KeyValue{Key: producerKey(log, id), Value: b, Log: log}, nil
}
