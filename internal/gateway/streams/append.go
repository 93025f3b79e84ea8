package streams

import (
	"context"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Addition is a request to append to a stream, to close it, or both.
type Addition struct {
	ContentType string
	// Empty only if Close is true.
	Body  []byte
	Close bool
	// Stream-Seq; if it is empty, the order isn't checked.
	Seq string
	// Nil for a client that repeats nothing.
	Producer *Producer
}

// Added is what became of it.
type Added struct {
	verdict
	// Tail is the end of the stream, and IsClosed its state now.
	Tail     int64
	Tag      string
	IsClosed bool
}

// Append returns when the commit is durable as configured. If it returns an error, nothing was appended, except that the result may be
// unknown after [gateway.ErrUnavailable]. Append appends to a stream and closes it, in one commit. A refusal of the producer, or of a closed stream, is a
// result and not an error.
func (s *Store) Append(ctx context.Context, p gateway.Principal, path string, a Addition) (added Added, err error) {
	if err := isOpenTo(p, gateway.ActionWrite); err != nil {
		return added, err
	}
	key := keyOf(p.Account(), path)
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return added, err
	}
	defer unlock()
	st, err := s.open(ctx, key)
	if err != nil {
		return added, err
	}
	defer s.release(st)
	v, err := s.add(ctx, p, st, a)
	return Added{verdict: v, Tail: st.tail(), Tag: st.about.Tag, IsClosed: st.about.IsClosed}, err
}

// add checks an addition in the order that the protocol recommends, and commits it. The caller holds the lock of the
// stream.
func (s *Store) add(ctx context.Context, p gateway.Principal, st *state, a Addition) (v verdict, err error) {
	// The close comes first, so that clients get its header, whatever else is wrong.
	about := st.about
	if about.IsClosed {
		return closedVerdict(&about, a), nil
	}
	if len(a.Body) > 0 && mediaType(a.ContentType) != mediaType(about.ContentType) {
		return v, conflict("the stream consists of %s and not of %.64q", about.ContentType, a.ContentType)
	}
	// A repeated append must not be refused for its Stream-Seq, which it has used itself. So producers are judged
	// before that.
	c := change{}
	if a.Producer != nil {
		var entry *journal.KeyValue
		if v, entry, err = s.judge(ctx, st, a.Producer); err != nil || entry == nil {
			return v, err
		}
		c.keys = append(c.keys, *entry)
	}
	if a.Seq != "" && a.Seq <= about.LastSeq {
		return v, conflict("Stream-Seq %.64q must be above %.64q, the last one", a.Seq, about.LastSeq)
	}
	content, err := newPayload(about.ContentType, a.Body)
	if err != nil {
		return v, err
	}
	if content == nil && len(a.Body) > 0 {
		return v, invalid("an empty array appends nothing")
	}
	if content != nil {
		c.payloads = []*payload{content}
	}
	if a.Seq != "" {
		about.LastSeq, c.about = a.Seq, &about
	}
	if a.Close {
		about.IsClosed, about.ClosedBy, c.about = true, a.Producer, &about
	}
	// A write also extends a sliding lifetime. It is stored with the append, and only if the stored one would end
	// before.
	deadline := renewed(&about, time.Now())
	if deadline > about.Deadline {
		about.Deadline, c.about = lease(deadline, about.TTL), &about
	}
	grant, err := s.gw.Reserve(p, quota.Need{Message: true, Bytes: size(c.payloads), Owner: about.owner()})
	if err != nil {
		return v, err
	}
	defer grant.Cancel() // without an effect after Commit
	if err := s.commit(ctx, st, c); err != nil {
		return v, err
	}
	grant.Commit()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.promise = max(st.promise, deadline)
	if a.Producer != nil {
		st.producers[a.Producer.ID] = producerState{v.Epoch, v.Seq, time.Now().UnixMilli()}
	}
	return v, nil
}

// closedVerdict returns the outcome of an addition to a closed stream. The append that closed it may be repeated, and
// so may a close without data.
func closedVerdict(about *description, a Addition) verdict {
	switch {
	case a.Producer != nil && about.ClosedBy != nil && *a.Producer == *about.ClosedBy:
		return verdict{duplicate, a.Producer.Epoch, a.Producer.Seq}
	case a.Producer == nil && a.Close && len(a.Body) == 0:
		return verdict{Outcome: Accepted}
	}
	return verdict{Outcome: Closed}
}

const (
	// maxProducers is how many producers a stream knows.
	maxProducers = 1000
	// producerLife is how long a producer is remembered when there are too many, as the protocol recommends.
	producerLife = 7 * 24 * time.Hour
)

// judge decides about an append of a producer. If it is accepted, entry is the key to store with it.
func (s *Store) judge(ctx context.Context, st *state, p *Producer) (v verdict, entry *journal.KeyValue, err error) {
	// They are read when the first producer appends, because most streams have none.
	if st.producers == nil {
		if st.producers, err = s.readProducers(ctx, st.about.ID); err != nil {
			return v, nil, err
		}
	}
	var previous *producerState
	if k, ok := st.producers[p.ID]; ok {
		previous = &k
	}
	if v = p.judge(previous); v.Outcome != Accepted {
		return v, nil, nil
	}
	if previous == nil && len(st.producers) >= maxProducers {
		if err := s.forgetProducers(ctx, st); err != nil {
			return v, nil, err
		}
	}
	e, err := producerEntry(st.about.ID, p.ID, producerState{v.Epoch, v.Seq, time.Now().UnixMilli()})
	return v, &e, err
}

// forgetProducers makes room for another producer, or refuses it. It is a separate commit: if the append fails after
// it, a producer that has been silent for a week counts as a new one, which the protocol allows.
func (s *Store) forgetProducers(ctx context.Context, st *state) error {
	oldest := time.Now().Add(-producerLife).UnixMilli()
	var keys []journal.KeyValue
	for id, producer := range st.producers {
		if producer.At < oldest {
			keys = append(keys, journal.KeyValue{Key: producerKey(st.about.ID, id)})
		}
	}
	if len(keys) == 0 {
		return full("a stream may have %d producers; use the same Producer-Id again after a restart", maxProducers)
	}
	if err := s.commit(ctx, st, change{keys: keys}); err != nil {
		return err
	}
	for id, producer := range st.producers {
		if producer.At < oldest {
			delete(st.producers, id)
		}
	}
	return nil
}
