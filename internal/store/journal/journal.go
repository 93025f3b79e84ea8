package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
)

// Journal is the interface that every implementation provides. All methods are safe for concurrent use. A package that uses a
// journal declares an interface with only the methods that it calls.
type Journal interface {
	// Append writes a batch and returns when it is durable. The seqs of the events must be Expected+1, Expected+2, and so on.
	// Batches of concurrent callers share a commit. Slices aren't retained. Errors wrap ErrFenced, ErrNotFound, ErrExists,
	// ErrDeleted, ErrInvalid, ErrFull, ErrUnknown or ErrClosed. If ctx ends before a commit includes the batch, the batch is
	// withdrawn. Later, Append waits for the result.
	Append(ctx context.Context, b Batch) error

	// Read returns a log's events after a seq, in ascending order: compacted ones up to Range.Compacted, and later ones as written.
	// It stops after about limit bytes of JSON (0 means no limit), never inside a commit, and then sets Range.HasMore. A compacted
	// event with a seq above after is complete, even if it began before.
	Read(ctx context.Context, conversation string, after int64, limit int) (Range, error)

	// Conversation returns one summary. As in all methods with a conversation, the error is ErrNotFound if it doesn't exist, and
	// ErrDeleted if it was deleted.
	Conversation(ctx context.Context, id string) (Summary, error)
	// Conversations lists summaries, newest Updated first, then highest ID first. The summary of a damaged conversation has only
	// the journal's own fields, Updated, and the fields that the query selected by.
	Conversations(ctx context.Context, q Query) ([]Summary, error)

	// StoredBytes returns the sizes of an owner's conversations and of all conversations of the tenant, in bytes. They include logs
	// as stored and summaries, without traces and keys. They are computed in memory. A commit is included before its Append
	// returns.
	StoredBytes(tenant, owner string) (ofOwner, ofTenant int64)

	// Get returns a key's value. If the key doesn't exist or has expired, the error is ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
	// Keys lists the keys with a prefix and their values, in ascending order. It omits keys of damaged conversations. In the
	// gateway's own logs, a damaged value is nil instead.
	Keys(ctx context.Context, prefix string) ([]KeyValue, error)
	// KeysAfter lists up to limit keys with a prefix that follow the key after, in ascending order. limit must be positive. A
	// result with fewer than limit keys is the last page.
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]KeyValue, error)

	// Compact rewrites the log up to a seq as transcript.Compact does, in one or more stretches with the same fold, and stores the
	// traces of its turns. The caller guarantees that no turn runs or waits at or below upto. A repeated call has no effect. If
	// upto is above the head, it means the head.
	Compact(ctx context.Context, conversation string, upto int64) error
	// Trace returns the stored history of one turn so far. If the turn has none, for example because DefaultTraceRetention has
	// passed, the error is ErrNotFound.
	Trace(ctx context.Context, conversation, turn string) (Trace, error)
	// Trim removes the events up to a seq. Readers from before that get a snapshot. If upto is above the head, it means the head.
	Trim(ctx context.Context, conversation string, upto int64) error
	// Delete removes a conversation with its rows, keys and traces. When it returns, no file of the store contains the
	// conversation's text. Records about the conversation in logs with SystemPrefix lose their data and stay. A tombstone prevents
	// the id from being used again. Deleting a deleted conversation succeeds. If ctx ends early, the conversation is gone for
	// all callers, and the journal completes the delete in the background.
	Delete(ctx context.Context, conversation string) error
	// Blank removes the data of the events that match selects, in place. A record loses what Delete removes from records; a
	// message.add loses its author and the content of its parts; a turn.resume loses the person who answered, and the text. The
	// events keep their seqs. When Blank returns, no file of the store contains the removed data. match may be called several times
	// for an event, and from another goroutine. It isn't called for other events, or for blank ones. If ctx ends early, a repeated
	// call does the rest.
	Blank(ctx context.Context, conversation string, match func(*event.Event) bool) error

	// Backup writes a consistent copy of the store to a new file at path while the store is in use. A journal without a file
	// returns errors.ErrUnsupported.
	Backup(ctx context.Context, path string) error
	// Healthy returns nil, or the reason why commits fail at present.
	Healthy() error
	// Close commits queued batches and releases the store.
	Close() error
}

// AsyncAppender is implemented by journals that can append without a goroutine that waits.
type AsyncAppender interface {
	// AppendAsync is Append without the wait, and calls report with the result. report may be called before AppendAsync returns, or
	// by the goroutine that commits, so it must not block or call a method that waits for a commit. If AppendAsync returns an error, report
	// isn't called.
	AppendAsync(b Batch, report func(error)) error
}

// DamageReporter is implemented by journals that quarantine damaged conversations and serve the others.
type DamageReporter interface {
	// Damaged lists the damage found since the journal was opened, the first of each conversation, by id. Methods with such a
	// conversation return a [*DamageError], except Delete, and Conversation if the summary is intact.
	Damaged() []DamageError
}

// SystemPrefix is the prefix of the ids of the gateway's own logs, such as signals and audit.
const SystemPrefix = "$"

// StreamPrefix is the prefix of the ids of logs that clients write themselves. Like the gateway's own logs they aren't conversations, and are in
// no list. Unlike them they have no records about conversations, and a damaged one isn't read.
const StreamPrefix = SystemPrefix + "stream-"

// IsSystem reports whether an id is one of the gateway's own logs.
func IsSystem(id string) bool {
	return strings.HasPrefix(id, SystemPrefix) && !strings.HasPrefix(id, StreamPrefix)
}

// Batch is written in one transaction. It belongs to one conversation.
type Batch struct {
	Conversation string
	// Expected is the seq of the log's last event as the writer knows it, or 0 for an empty log.
	Expected int64
	Events   []event.Event
	Keys     []KeyValue
	// Create creates the conversation and requires Summary. If the id was used before, the error is ErrExists or ErrDeleted.
	Create bool
	// Summary, if set, replaces the stored one. Its Epoch, Head, Compacted and Trimmed are ignored, because the journal maintains
	// them.
	Summary *Summary
	// Terminal marks a batch that ends turns. On a full disk, the journal uses its reserve for it.
	Terminal bool
}

// KeyValue is stored in addition to the logs.
type KeyValue struct {
	Key   string // unique in the whole store, at most 1 KiB
	Value []byte // nil deletes the key
	// Expires is when the key may be removed, epoch milliseconds. If it is 0, the key lives as long as its conversation.
	Expires int64
	// Log is the conversation that owns the key, and whose deletion removes it. If it is empty, that is the batch's conversation. A
	// batch is refused if the owner of a key doesn't exist. A key that must outlive a conversation belongs to one of the gateway's
	// own logs, and must not contain text of the conversation.
	Log string
}

// Summary describes a conversation without its log.
type Summary struct {
	ID       string                     `json:"id"`
	Tenant   string                     `json:"tenant,omitempty"`
	Owner    string                     `json:"owner,omitempty"` // subject
	Title    string                     `json:"title,omitempty"`
	Agent    string                     `json:"agent,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Unlisted conversations aren't in any list and can only be found by id.
	Unlisted bool `json:"unlisted,omitempty"`
	// Grants are the other users with access to the conversation.
	Grants  []Grant `json:"grants,omitempty"`
	Created int64   `json:"created"` // epoch milliseconds
	Updated int64   `json:"updated"`
	// Truncated is the seq of the last truncate.
	Truncated int64 `json:"truncated,omitempty"`
	// SpokenSeq is the seq of the last event that shows people something new from an agent. A conversation is unread for a reader
	// before it.
	SpokenSeq int64 `json:"spoken,omitempty"`
	// Open lists the turns that are queued, running or waiting.
	Open []string `json:"open,omitempty"`
	// WaitingTurns lists the open turns that wait for a person.
	WaitingTurns []string `json:"waiting,omitempty"`

	// Maintained by the journal:
	Epoch     string `json:"epoch"`   // new at creation and at a restore; see Term for lost events
	Head      int64  `json:"head"`    // seq of the last event
	Compacted int64  `json:"settled"` // the log is compacted up to this seq
	Trimmed   int64  `json:"trimmed,omitempty"`
}

// Grant gives another user of the owner's tenant access to a conversation. The gateway defines the values of Access.
type Grant struct {
	Subject string `json:"subject"`
	Access  string `json:"access"`
}

// Query selects conversations.
type Query struct {
	Tenant, Owner string // empty selects all
	// IDs, if not nil, restricts the selection to these conversations.
	IDs []string
	// Unfinished selects only conversations with open turns.
	Unfinished bool
	// System includes the gateway's own logs, whose ids begin with SystemPrefix.
	System bool
	// BeforeUpdated and BeforeID select the next page: the conversations that follow (Updated, ID) in the listing.
	BeforeUpdated int64
	BeforeID      string
	Limit         int // 0 means no limit
}

// Range is a stretch of a log.
type Range struct {
	Epoch string
	// Head is the seq of the log's last event. Compacted and Trimmed are as in Summary. All fields show the log at one moment.
	Head, Compacted, Trimmed int64
	Events                   []event.Event
	// Terms are the openings of the store that wrote the events, in ascending FirstSeq. The last one also applies to the next
	// event. A journal that stores nothing beyond Close has none.
	Terms []Term
	// HasMore says that events up to Head are missing because of the limit.
	HasMore bool
}

// Term is the stretch of a log that was written during one opening of the store. If a log loses its newest events, their seqs are
// used again, but in a later term. So a seq identifies an event only together with its term.
type Term struct {
	FirstSeq int64  // seq of its first event
	ID       string // unique to the opening
}

// Trace is the history of one turn over time, for inspection and replay.
type Trace struct {
	Turn    string        `json:"turn"`
	Commits []TraceCommit `json:"commits"`
	// Replacements are the texts that a replace removed, oldest first, up to [MaxReplaced] bytes in total. A replace by the same text is not
	// among them.
	Replacements []TraceReplace `json:"replaced,omitempty"`
}

// TraceCommit records what one event added, when it arrived, and when it was durable.
type TraceCommit struct {
	Arrival int64      `json:"arrival"` // epoch milliseconds
	Commit  int64      `json:"commit"`
	Seq     int64      `json:"seq"`
	Type    event.Type `json:"type"`
	Message string     `json:"message,omitempty"`
	Part    string     `json:"part,omitempty"`
	Field   string     `json:"field,omitempty"` // empty for the text, as in events
	End     int64      `json:"end,omitempty"`   // length of the field after the event, bytes; only for operations on a text
}

// TraceReplace is a text that was replaced.
type TraceReplace struct {
	Seq     int64  `json:"seq"` // of the replacing event
	Message string `json:"message"`
	Part    string `json:"part"`
	Field   string `json:"field,omitempty"`
	Text    string `json:"text"`
}

// MaxReplaced limits the replaced texts in the trace of a turn, in bytes.
const MaxReplaced = 256 << 10

// DefaultTraceRetention is how long traces are kept. It leaves time to investigate users' reports.
const DefaultTraceRetention = 30 * 24 * time.Hour

// NewEpoch returns a new random identity for a log. Cursors contain it, so a cursor of another log is recognized. Journals call it
// when they create a log.
func NewEpoch() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// EachKey returns the keys with a prefix that follow the key after, in ascending order. It reads them in pages with list, which is
// [Journal.KeysAfter], so keys may be written meanwhile. It ends after an error.
func EachKey(
	ctx context.Context, list func(ctx context.Context, prefix, after string, limit int) ([]KeyValue, error), prefix, after string, page int,
) iter.Seq2[KeyValue, error] {
	return func(yield func(KeyValue, error) bool) {
		for {
			keys, err := list(ctx, prefix, after, page)
			if err != nil {
				yield(KeyValue{}, err)
				return
			}
			for _, kv := range keys {
				after = kv.Key
				if !yield(kv, nil) {
					return
				}
			}
			if len(keys) < page {
				return
			}
		}
	}
}

// MaxKey limits the length of a key, in bytes.
const MaxKey = 1 << 10

// Validate returns an error that wraps [ErrInvalid] if no log could accept the batch. Every implementation of Append calls it
// first.
func (b *Batch) Validate() error {
	if b.Conversation == "" {
		return fmt.Errorf("%w: conversation is missing", ErrInvalid)
	}
	if err := event.CheckID("conversation", b.Conversation); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if b.Create && b.Summary == nil {
		return fmt.Errorf("%w: creating a conversation requires a summary", ErrInvalid)
	}
	if b.Expected < 0 {
		return fmt.Errorf("%w: expected seq %d", ErrInvalid, b.Expected)
	}
	for i := range b.Events {
		if want := b.Expected + int64(i) + 1; b.Events[i].Seq != want {
			return fmt.Errorf("%w: event %d has seq %d, want %d", ErrInvalid, i, b.Events[i].Seq, want)
		}
	}
	for _, kv := range b.Keys {
		if kv.Key == "" || len(kv.Key) > MaxKey {
			return fmt.Errorf("%w: key has %d bytes, must have 1 to %d", ErrInvalid, len(kv.Key), MaxKey)
		}
	}
	return nil
}

// Compare orders summaries as a listing does: by Updated, newest first, then by ID, highest first.
func (s *Summary) Compare(o *Summary) int {
	switch {
	case s.Updated > o.Updated, s.Updated == o.Updated && s.ID > o.ID:
		return -1
	case s.Updated == o.Updated && s.ID == o.ID:
		return 0
	}
	return 1
}

// Matches reports whether q selects the summary. It ignores Limit.
func (q *Query) Matches(s *Summary) bool {
	if (q.Tenant != "" && q.Tenant != s.Tenant) || (q.Owner != "" && q.Owner != s.Owner) || (q.Unfinished && len(s.Open) == 0) || (!q.System && strings.HasPrefix(s.ID, SystemPrefix)) {
		return false
	}
	if q.IDs != nil && !slices.Contains(q.IDs, s.ID) {
		return false
	}
	if q.BeforeUpdated == 0 && q.BeforeID == "" {
		return true
	}
	return s.Compare(&Summary{Updated: q.BeforeUpdated, ID: q.BeforeID}) > 0
}
