package streams

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Creation describes a stream to create.
type Creation struct {
	// ContentType may be empty for a fork, which has that of its source then.
	ContentType string
	// TTL is how many seconds the stream exists after its last use, if HasTTL is true. ExpiresAt is a time of RFC
	// 3339, or empty.
	TTL       int64
	HasTTL    bool
	ExpiresAt string
	IsClosed  bool
	Body      []byte

	// Fork is the path of the stream of which the new one is a fork, or empty.
	Fork string
	// ForkAt is the position up to which the fork has the data of its source, with its tag. If HasForkAt is false, it
	// is the end.
	ForkAt    int64
	ForkTag   string
	HasForkAt bool
	// ForkSub is how many values or bytes of the append after ForkAt the fork also has.
	ForkSub int64
}

func (c *Creation) lifetime() lifetime { return lifetime{c.TTL, c.HasTTL, c.ExpiresAt} }

// Create never changes a stream that exists, and doesn't append the body to it. With other properties the error is a conflict, and so
// it is if the path belongs to a deleted stream with forks. Create creates a stream, or confirms that one with the same properties exists.
func (s *Store) Create(ctx context.Context, p gateway.Principal, path string, c Creation) (about About, isCreated bool, err error) {
	if err := isOpenTo(p, gateway.ActionCreate); err != nil {
		return about, false, err
	}
	if err := checkPath(path); err != nil {
		return about, false, err
	}
	life := c.lifetime()
	if _, err := life.deadline(time.Now()); err != nil {
		return about, false, err
	}
	// The source of a fork is locked as well, so that it can't be deleted until the fork is stored and counts as one
	// of its forks.
	owner := p.Account()
	key := keyOf(owner, path)
	keys := []string{key}
	if c.Fork != "" {
		if source := keyOf(owner, c.Fork); source < key {
			keys = []string{source, key} // always in the same order, so that two requests can't wait for each other
		} else if source > key {
			keys = append(keys, source)
		}
	}
	for _, k := range keys {
		unlock, err := s.locks.Lock(ctx, k)
		if err != nil {
			return about, false, err
		}
		defer unlock()
	}
	st, err := s.open(ctx, key)
	switch {
	case err == nil:
		defer s.release(st)
		if !c.equals(&st.about) {
			return about, false, conflict("the stream exists with other properties; use another path or delete it")
		}
		return st.describe(), false, nil
	case errors.Is(err, ErrGone):
		return about, false, conflict("the stream was deleted or has expired, and its data is kept for forks or a legal hold; use another path")
	case !errors.Is(err, gateway.ErrNotFound):
		return about, false, err
	}
	return s.create(ctx, p, path, c)
}

// checkPath refuses paths that can't be stored.
func checkPath(path string) error {
	switch {
	case path == "" || len(path) > maxPath:
		return invalid("the path of a stream must have 1 to %d bytes", maxPath)
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return invalid("the path of a stream must be UTF-8 without control characters")
	}
	return nil
}

// equals reports whether a stream has the properties that a request names.
func (c *Creation) equals(d *description) bool {
	sameLife := d.TTL == c.TTL && d.HasTTL == c.HasTTL && d.ExpiresAt == c.ExpiresAt || d.HasSourceLifetime && !c.HasTTL && c.ExpiresAt == ""
	if !sameLife || c.IsClosed != d.IsClosed || (c.Fork != "") != (d.Source != nil) {
		return false
	}
	sameType := mediaType(c.ContentType) == mediaType(d.ContentType)
	if d.Source == nil {
		return sameType
	}
	return (sameType || c.ContentType == "") && c.Fork == d.Source.Path && (!c.HasForkAt || c.ForkAt == d.Source.At) && c.ForkSub == d.Source.Sub
}

// create creates a stream that doesn't exist. Its log, its first data, its description, the mark of a fork and the
// audit entry are one commit, so that a crash leaves all of them or nothing. The caller holds the locks of the stream
// and its source.
func (s *Store) create(ctx context.Context, p gateway.Principal, path string, c Creation) (about About, isCreated bool, err error) {
	owner, at := p.Account(), time.Now()
	d := description{
		ID: journal.StreamPrefix + random(16), Tenant: owner.Tenant, Subject: owner.Subject, Path: path, ContentType: c.ContentType,
		Created: at.UnixMilli(), Tag: tag(at), IsClosed: c.IsClosed,
	}
	var payloads []*payload
	var keys []journal.KeyValue
	life := c.lifetime()
	if c.Fork != "" {
		prefix, err := s.fork(ctx, &d, &life, c)
		if err != nil {
			return about, false, err
		}
		if prefix != nil {
			payloads = append(payloads, prefix)
		}
		keys = append(keys, journal.KeyValue{Key: forkKey(d.Chain[len(d.Chain)-1].Log, d.ID), Value: []byte(d.key()), Log: d.ID})
	}
	body, err := newPayload(d.ContentType, c.Body)
	if err != nil {
		return about, false, err
	}
	if body != nil {
		payloads = append(payloads, body)
	}
	d.TTL, d.HasTTL, d.ExpiresAt = life.TTL, life.HasTTL, life.ExpiresAt
	deadline, err := life.deadline(at)
	if err != nil {
		return about, false, err
	}
	if d.Deadline = deadline; d.HasTTL {
		d.Deadline = lease(deadline, d.TTL)
	}
	// The stream is counted before it is stored, so that two requests can't both take the last place.
	uncount, err := s.count(ctx, owner)
	if err != nil {
		return about, false, err
	}
	defer func() {
		if err != nil {
			uncount()
		}
	}()
	grant, err := s.gw.Reserve(p, quota.Need{Message: true, Bytes: size(payloads), Owner: owner})
	if err != nil {
		return about, false, err
	}
	defer grant.Cancel() // without an effect after Commit
	entry, err := d.entry()
	if err != nil {
		return about, false, err
	}
	note, err := s.gw.Audit().Note(audit.Entry{Action: "stream.create", Actor: gateway.Actor(ctx, p), Tenant: owner.Tenant, Subject: owner.Subject})
	if err != nil {
		return about, false, err
	}
	st := &state{about: d, head: int64(len(payloads)), promise: deadline, changed: make(chan struct{}), users: 1, unmerged: len(payloads)}
	err = s.journal.Append(ctx, journal.Batch{
		Conversation: d.ID, Create: true, Events: events(0, payloads), Keys: append(keys, entry, note),
		Summary: &journal.Summary{Tenant: owner.Tenant, Owner: owner.Subject, Created: d.Created, Updated: d.Created, Unlisted: true},
	})
	if err != nil {
		return about, false, gateway.JournalError("create stream", err)
	}
	grant.Commit()
	s.gw.Audit().Wake()
	s.cache(d.key(), st)
	if len(payloads) > 0 {
		s.appended(owner, path)
	}
	defer s.release(st)
	return st.describe(), true, nil
}

// size estimates how many bytes payloads take in the log.
func size(payloads []*payload) int64 {
	n := int64(recordSize)
	for _, p := range payloads {
		n += int64(len(p.data)) + recordSize
	}
	return n
}

// recordSize is about how many bytes a record takes besides its data.
const recordSize = 128

// random returns n random bytes as text.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// tag returns what makes the offsets of a stream different from those of an earlier one with the same path: its
// creation in milliseconds, and three more digits.
func tag(at time.Time) string {
	var b [2]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%013d%03d", at.UnixMilli(), (int(b[0])<<8|int(b[1]))%1000)
}

// count adds a stream to those of a user, or refuses it. uncount takes it back. The first call for a user counts the
// keys; later ones know the number, which Erase and Delete keep right.
func (s *Store) count(ctx context.Context, owner quota.Account) (uncount func(), err error) {
	unlock, err := s.locks.Lock(ctx, ownerPrefix(owner))
	if err != nil {
		return nil, err
	}
	defer unlock()
	s.mu.Lock()
	n, isKnown := s.counts[owner]
	s.mu.Unlock()
	if !isKnown {
		for _, err := range journal.EachKey(ctx, s.journal.KeysAfter, ownerPrefix(owner), "", keyPage) {
			if err != nil {
				return nil, gateway.JournalError("count streams", err)
			}
			n++
		}
	}
	if n >= maxStreams {
		return nil, full("a user may have %d streams; delete some first", maxStreams)
	}
	s.addCount(owner, n+1, true)
	return func() { s.addCount(owner, -1, false) }, nil
}

// addCount sets the number of a user's streams, or adds to it if it is known.
func (s *Store) addCount(owner quota.Account, n int, isTotal bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, isKnown := s.counts[owner]
	switch {
	case isTotal:
		if len(s.counts) >= maxCounts {
			clear(s.counts) // they are counted again when they are needed
		}
		s.counts[owner] = n
	case isKnown:
		s.counts[owner] = old + n
	}
}

// maxCounts is for how many users the number of streams is in memory, at about a hundred bytes each.
const maxCounts = 10_000

// keyPage is how many keys are read at once.
const keyPage = 256
