package gateway

import (
	"context"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Journal is the durable store of a gateway's conversations. It is the part of [journal.Journal] that the gateway uses; the methods are
// described there. All methods may be called by several goroutines at once.
type Journal interface {
	// Get reads the value of one key, Keys and KeysAfter list keys with a prefix.
	Get(ctx context.Context, key string) ([]byte, error)
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error)

	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
	Trace(ctx context.Context, conversation, turn string) (journal.Trace, error)
	Conversation(ctx context.Context, id string) (journal.Summary, error)
	Append(ctx context.Context, b journal.Batch) error
	Conversations(ctx context.Context, q journal.Query) ([]journal.Summary, error)
	StoredBytes(tenant, owner string) (ofOwner, ofTenant int64)
	Compact(ctx context.Context, conversation string, upto int64) error
	Delete(ctx context.Context, conversation string) error
	Blank(ctx context.Context, conversation string, match func(*event.Event) bool) error
	Trim(ctx context.Context, conversation string, upto int64) error
	Healthy() error
}

// feedLog reads conversations from the journal for their feeds.
type feedLog struct{ journal Journal }

// Read implements [feed.Log].
func (l feedLog) Read(ctx context.Context, conversation string, after int64, limit int) (feed.Stretch, error) {
	s, err := l.journal.Conversation(ctx, conversation)
	if err != nil {
		return feed.Stretch{}, err
	}
	r, err := l.journal.Read(ctx, conversation, after, limit)
	if err != nil {
		return feed.Stretch{}, err
	}
	terms := make([]feed.Term, len(r.Terms))
	for i, t := range r.Terms {
		terms[i] = feed.Term(t)
	}
	return feed.Stretch{
		Terms: terms, Epoch: r.Epoch, Head: r.Head, Compacted: r.Compacted, Trimmed: r.Trimmed, Truncated: s.Truncated, Events: r.Events, HasMore: r.HasMore,
	}, nil
}
