// What is stored about a stream besides its data, and under which keys.

package streams

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Prefix is the prefix of the keys that describe streams. Their values name the user to whom a stream belongs.
const Prefix = "stream/at/"

// The prefixes of the other keys. They contain the id of a stream's log, which owns them, so that they are deleted
// with it.
const (
	producerKeys = "stream/producer/"
	forkKeys     = "stream/fork/"
)

// description is the value of a stream's key.
type description struct {
	// Of its log in the journal.
	ID      string `json:"id"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject"`
	Path    string `json:"path"`

	ContentType string `json:"type"`
	// Epoch milliseconds.
	Created int64 `json:"created"`
	// Part of its offsets; a fork has that of its source.
	Tag string `json:"tag"`
	// Seconds; see HasTTL.
	TTL    int64 `json:"ttl,omitempty"`
	HasTTL bool  `json:"sliding,omitempty"`
	// As the client wrote it, RFC 3339.
	ExpiresAt string `json:"expires,omitempty"`
	// HasSourceLifetime says that a fork has the lifetime of its source, because its creator named none.
	HasSourceLifetime bool `json:"inherited,omitempty"`
	// Deadline is when the stream expires, epoch milliseconds; 0 means never. With a sliding lifetime it may be later
	// than what clients were promised, and never earlier: see lease.
	Deadline int64 `json:"deadline,omitempty"`

	IsClosed bool `json:"closed,omitempty"`
	// The append of a producer that closed it.
	ClosedBy *Producer `json:"closedBy,omitempty"`
	// The last Stream-Seq.
	LastSeq string `json:"seq,omitempty"`
	// IsDeleted says that the stream was deleted, and that forks still need its data.
	IsDeleted bool `json:"deleted,omitempty"`

	// The position up to which the data is that of the sources.
	Base int64 `json:"base,omitempty"`
	// Nil unless it is a fork.
	Source *source `json:"source,omitempty"`
	// The logs with the data up to Base.
	Chain []segment `json:"chain,omitempty"`
}

// source says from what a fork was made.
type source struct {
	Path string `json:"path"`
	// Position.
	At int64 `json:"at"`
	// Values or bytes of the append after it.
	Sub int64 `json:"sub,omitempty"`
}

// segment is a part of a stream that is in the log of another one: the positions above Start up to End. The seq of a
// position is the position minus Start.
type segment struct {
	Log        string `json:"log"`
	Start, End int64
}

// digest returns a name of fixed length for a list of texts. Keys contain digests, because paths may be longer than a
// key.
func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(t)))
		h.Write(n[:])
		h.Write([]byte(t))
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// ownerPrefix is the prefix of the keys of a user's streams.
func ownerPrefix(owner quota.Account) string {
	return Prefix + digest(owner.Tenant, owner.Subject) + "/"
}

// keyOf returns the key of a stream. Users with the same path have different streams.
func keyOf(owner quota.Account, path string) string { return ownerPrefix(owner) + digest(path) }

// key returns the key of the stream.
func (d *description) key() string { return keyOf(d.owner(), d.Path) }

func (d *description) owner() quota.Account {
	return quota.Account{Tenant: d.Tenant, Subject: d.Subject}
}

// entry returns the key with the description as its value.
func (d *description) entry() (journal.KeyValue, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return journal.KeyValue{}, fmt.Errorf("streams: describe: %w", err)
	}
	return journal.KeyValue{Key: d.key(), Value: b, Log: d.ID}, nil
}

// producerKey returns the key of a producer's state.
func producerKey(log, producer string) string { return producerKeys + log + "/" + digest(producer) }

// forkKey returns the key that marks a fork. While a log has such keys, other streams need its data.
func forkKey(source, fork string) string { return forkKeys + source + "/" + fork }

// isExpired reports whether the lifetime of the stream has ended.
func (d *description) isExpired(at time.Time) bool {
	return d.Deadline != 0 && at.UnixMilli() >= d.Deadline
}

// lifetime is the time that a stream exists.
type lifetime struct {
	// Seconds after the last read or write.
	TTL    int64
	HasTTL bool
	// RFC 3339.
	ExpiresAt string
}

// maxTTL is a century in seconds. Longer lifetimes would overflow, and mean the same as none.
const maxTTL = 100 * 365 * 24 * 3600

// deadline checks the lifetime that a client wants. A deadline in the past is valid: such a stream expires at once.
// deadline returns when a stream with the lifetime expires that was used at a time, or 0.
func (l *lifetime) deadline(at time.Time) (int64, error) {
	switch {
	case l.HasTTL && l.ExpiresAt != "":
		return 0, invalid("a stream has either a Stream-TTL or a Stream-Expires-At")
	case l.HasTTL && (l.TTL < 0 || l.TTL > maxTTL):
		return 0, invalid("Stream-TTL %d must be at most %d seconds", l.TTL, maxTTL)
	case l.HasTTL:
		return at.UnixMilli() + l.TTL*1000, nil
	case l.ExpiresAt == "":
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339, l.ExpiresAt)
	if err != nil {
		return 0, invalid("Stream-Expires-At %.64q is not a time of RFC 3339, such as 2030-01-31T12:00:00Z", l.ExpiresAt)
	}
	return t.UnixMilli(), nil
}

// lease returns the deadline to store for a stream with a sliding lifetime, from the deadline that clients are
// promised. It is later by a tenth of the lifetime, so that reads need not write for each of their renewals. After a
// restart the stream may therefore live that much longer, and never shorter.
func lease(deadline, ttl int64) int64 { return deadline + ttl*1000/10 }
