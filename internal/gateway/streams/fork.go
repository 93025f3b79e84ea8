package streams

import (
	"context"
	"errors"
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
)

// maxChain is how many logs the data of a fork may be in. Each read of the beginning reads them one after another.
const maxChain = 64

// fork completes the description of a fork, and its lifetime. It returns the part of the source's next append that
// the fork has too, or nil. The caller holds the lock of the source, so the source can't be deleted before the fork
// is stored.
func (s *Store) fork(ctx context.Context, d *description, life *lifetime, c Creation) (*payload, error) {
	st, err := s.open(ctx, keyOf(d.owner(), c.Fork))
	switch {
	case errors.Is(err, ErrGone):
		return nil, conflict("the stream to fork was deleted, and only its forks are left; fork one of them")
	case err != nil:
		return nil, err
	}
	defer s.release(st)
	of := &st.about
	if c.ContentType != "" && mediaType(c.ContentType) != mediaType(of.ContentType) {
		return nil, conflict("a fork has the content type of its source, which is %s", of.ContentType)
	}
	if d.ContentType == "" {
		d.ContentType = of.ContentType
	}
	at, tail := tailOf(c, st)
	switch {
	case at > tail || at > 0 && c.HasForkAt && c.ForkTag != of.Tag:
		return nil, invalid("the Stream-Fork-Offset is not an offset of the stream to fork")
	case len(of.Chain) >= maxChain:
		return nil, full("a fork of a fork may be %d levels deep", maxChain)
	}
	// The fork gets the logs that its source consists of, each up to the place of the fork. Logs after that place
	// don't matter to it.
	d.Tag, d.Base, d.Source = of.Tag, at, &source{Path: c.Fork, At: at, Sub: c.ForkSub}
	for _, g := range append(slices.Clone(of.Chain), segment{of.ID, of.Base, tail}) {
		if g.Start < at || len(d.Chain) == 0 {
			d.Chain = append(d.Chain, segment{g.Log, g.Start, min(g.End, at)})
		}
	}
	// The source's own log is last even if the fork has none of it, because the fork is counted there.
	if last := &d.Chain[len(d.Chain)-1]; last.Log != of.ID {
		d.Chain = append(d.Chain, segment{of.ID, at, at})
	}
	// Without a requested lifetime, a fork must not outlive what its source was allowed to.
	if !life.HasTTL && life.ExpiresAt == "" && (of.HasTTL || of.ExpiresAt != "") {
		*life, d.HasSourceLifetime = lifetime{of.TTL, of.HasTTL, of.ExpiresAt}, true
	}
	if c.ForkSub == 0 {
		return nil, nil
	}
	return s.subPrefix(ctx, st, at, c.ForkSub)
}

// tailOf returns the position at which a fork begins, and the end of its source.
func tailOf(c Creation, st *state) (at, tail int64) {
	if tail = st.tail(); c.HasForkAt {
		return c.ForkAt, tail
	}
	return tail, tail
}

// subPrefix returns the first values or bytes of the append after a position.
func (s *Store) subPrefix(ctx context.Context, st *state, at, n int64) (*payload, error) {
	list, _, err := s.readRecords(ctx, &st.about, at, st.tail(), 1)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		if p, err := prefix(&list[0].Event, n); p != nil || err != nil {
			return p, err
		}
	}
	return nil, invalid("Stream-Fork-Sub-Offset %d is beyond the append that follows the offset", n)
}

// sourceKey returns the key of the stream of which this one is a fork, or "".
func (d *description) sourceKey() string {
	if d.Source == nil {
		return ""
	}
	return keyOf(d.owner(), d.Source.Path)
}

// collectAll deletes the source of a deleted fork, if it was deleted before and the fork was the last one, and then
// the source of that.
func (s *Store) collectAll(ctx context.Context, key string) error {
	for key != "" {
		d, err := s.collect(ctx, key)
		if err != nil || d == nil {
			return err
		}
		key = d.sourceKey()
	}
	return nil
}

// collect removes a deleted stream that has no forks any more, and returns what it was. It returns nil if it has
// removed nothing.
func (s *Store) collect(ctx context.Context, key string) (*description, error) {
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	st, err := s.load(ctx, key)
	if errors.Is(err, gateway.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.release(st)
	if !st.about.IsDeleted {
		return nil, nil
	}
	hasForks, err := s.hasForks(ctx, st.about.ID)
	if err != nil || hasForks {
		return nil, err
	}
	return &st.about, s.erase(ctx, st)
}

// hasForks reports whether other streams need the data of a log.
func (s *Store) hasForks(ctx context.Context, log string) (bool, error) {
	keys, err := s.journal.KeysAfter(ctx, forkKeys+log+"/", "", 1)
	if err != nil {
		return false, gateway.JournalError("look for forks", err)
	}
	return len(keys) > 0, nil
}
