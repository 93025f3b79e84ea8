package journal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/leat-dev/leat/event"
)

// Journal stores logs. All methods may be called from several goroutines.
type Journal interface {
	// Append writes a batch and returns when it is durable. Events' seqs must be Expected+1, Expected+2, ...
	// Several goroutines' batches share a commit. The slices are not kept.
	// Errors wrap ErrFenced, ErrNotFound, ErrExists, ErrDeleted, ErrInvalid, ErrFull, ErrUnknown or ErrClosed.
	// A context that ends before the batch is taken into a commit takes it back; later it is waited for.
	Append(ctx context.Context, b Batch) error

	// Read returns a log's events after a seq, in ascending seq: compacted ones where the log was settled, as written
	// above. It stops after about limit bytes of their JSON (0: no limit), never inside a commit, and Range.More says so.
	// A compacted event whose seq is above after is given whole, however early it began.
	Read(ctx context.Context, conversation string, after int64, limit int) (Range, error)

	// Conversation returns one summary; ErrNotFound, or ErrDeleted where a tombstone is, as do all methods that name one.
	Conversation(ctx context.Context, id string) (Summary, error)
	// Conversations lists summaries, newest Updated first, of equals the higher ID first. Of one that is damaged it gives the
	// journal's own fields, Updated, and what it was selected by.
	Conversations(ctx context.Context, q Query) ([]Summary, error)

	// Stored tells how many bytes an owner's conversations take, and all of its tenant, of those that are not deleted: their
	// logs as they lie in the store, settled or not, and their summaries, without traces and keys. It is kept in memory; a
	// commit counts before its Append returns.
	StoredBytes(tenant, owner string) (ofOwner, ofTenant int64)

	// Get returns a key's value, ErrNotFound where there is none or it has expired.
	Get(ctx context.Context, key string) ([]byte, error)
	// Keys lists the keys with a prefix, in ascending order, with their values. It leaves those of damaged conversations out. A
	// damaged value of a log of the gateway's own is nil.
	Keys(ctx context.Context, prefix string) ([]KeyValue, error)
	// KeysAfter lists the first keys with a prefix that come after a key, in ascending order: all that there are where it
	// returns fewer than limit, which is above 0. So what is many is read in pages.
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]KeyValue, error)

	// Compact settles the log up to a seq: what lies there is rewritten as transcript.Compact gives it, in one or several
	// stretches that fold the same, and its traces are kept. The caller promises that no turn runs or waits at or below
	// upto. It is idempotent; a seq above the head means the head.
	Compact(ctx context.Context, conversation string, upto int64) error
	// Trace returns what is kept of a turn's history in time, as far as the turn has come; ErrNotFound where there is none, as
	// after TraceRetention.
	Trace(ctx context.Context, conversation, turn string) (Trace, error)
	// Trim drops the events up to a seq. Readers from before get a snapshot. A seq above the head means the head.
	Trim(ctx context.Context, conversation string, upto int64) error
	// Delete removes a conversation: rows, keys, traces. Its text is in no file of the store when Delete returns.
	// Records about it in the logs whose ids begin with SystemPrefix lose their data and stay. A tombstone stays, so
	// that the id is not used again. Deleting a deleted one is no error. When the context ends half-way, the
	// conversation is gone for all callers, and the journal clears up by itself.
	Delete(ctx context.Context, conversation string) error
	// Blank takes the data out of the events of a log for which match says so, in place: out of a record as Delete does with
	// those about its conversation, out of a message.add its author and the content of its parts, out of a turn.resume who
	// gave the answer, and its text. The events stay, with their seqs. What was taken out is in no file of the store when it
	// returns. match may be called several times for an event, and from another goroutine; it gets no other events, and none
	// that are blank already. A context that ends half-way leaves the rest to a repeat.
	Blank(ctx context.Context, conversation string, match func(*event.Event) bool) error

	// Backup writes a consistent copy of the store to a new file at path, while it goes on. A journal without a file
	// answers errors.ErrUnsupported.
	Backup(ctx context.Context, path string) error
	// Healthy returns nil, or why commits fail now.
	Healthy() error
	// Close commits what waits and releases the store.
	Close() error
}

// DamageReporter is implemented by journals that quarantine damaged conversations and serve the others.
type DamageReporter interface {
	// Damaged lists the damage that was found since the journal was opened, the first of each conversation, by id. Methods
	// that name such a conversation return a [*DamageError], except Conversation if the summary is whole, and Delete.
	Damaged() []DamageError
}

// SystemPrefix begins the ids of the gateway's own logs, such as signals and audit.
const SystemPrefix = "$"

// Batch is what is written at once. It belongs to one conversation.
type Batch struct {
	Conversation string
	// Expected is the seq of the log's last event as the writer knows it; 0 for an empty log.
	Expected int64
	Events   []event.Event
	Keys     []KeyValue
	// Create makes the conversation; ErrExists or ErrDeleted where the id was used. Summary is then needed.
	Create bool
	// Summary, where given, replaces what is stored. Epoch, Head, Settled and Trimmed are the journal's and ignored.
	Summary *Summary
	// Terminal marks a batch that ends turns: a full disk gives up its reserve for it.
	Terminal bool
}

// KeyValue is stored beside the logs.
type KeyValue struct {
	Key   string // unique in the whole store, at most 1 KiB
	Value []byte // nil deletes
	// Expires is when the key may be forgotten, epoch milliseconds; 0 lives as long as its conversation.
	Expires int64
	// Log is the conversation to which the key belongs, and with which it goes; empty is the batch's. A batch is refused
	// whose keys belong to one that is not there. What has to outlive a conversation, and so holds none of its text, belongs
	// to a log of the gateway's own.
	Log string
}

// Summary is what is known of a conversation without reading its log.
type Summary struct {
	ID       string                     `json:"id"`
	Tenant   string                     `json:"tenant,omitempty"`
	Owner    string                     `json:"owner,omitempty"` // subject
	Title    string                     `json:"title,omitempty"`
	Agent    string                     `json:"agent,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Unlisted says that it is in no list of conversations, and is found by its id alone.
	Unlisted bool `json:"unlisted,omitempty"`
	// Grants say with whom the owner shares it.
	Grants  []Grant `json:"grants,omitempty"`
	Created int64   `json:"created"` // epoch milliseconds
	Updated int64   `json:"updated"`
	// Truncated is the seq of the last truncate.
	Truncated int64 `json:"truncated,omitempty"`
	// Spoken is the seq of the last by which an agent has said something to people: what comes after a reader's position is
	// unread.
	SpokenSeq int64 `json:"spoken,omitempty"`
	// Open lists the turns that are queued, running or waiting.
	Open []string `json:"open,omitempty"`

	// The journal's own.
	Epoch     string `json:"epoch"`   // new at creation and at a restore; see Term for lost events
	Head      int64  `json:"head"`    // seq of the last event
	Compacted int64  `json:"settled"` // up to here the log is compacted
	Trimmed   int64  `json:"trimmed,omitempty"`
}

// Grant lets another subject of the owner's tenant into a conversation. What the words mean is the gateway's to say.
type Grant struct {
	Subject string `json:"subject"`
	Access  string `json:"access"`
}

// Query selects conversations.
type Query struct {
	Tenant, Owner string // empty: all
	// IDs, where it is not nil, selects only conversations among them.
	IDs []string
	// Unfinished selects those with open turns.
	Unfinished bool
	// System selects the gateway's own logs too, whose ids begin with SystemPrefix; else they are in no list.
	System bool
	// BeforeUpdated and BeforeID page: only conversations that come after (Updated, ID) in the listing.
	BeforeUpdated int64
	BeforeID      string
	Limit         int // 0: all
}

// Range is a stretch of a log.
type Range struct {
	Epoch string
	// Head is the seq of the log's last event; Settled and Trimmed as in Summary. All of one moment with Events.
	Head, Compacted, Trimmed int64
	Events                   []event.Event
	// Terms say which opening of the store wrote which events, in ascending First. The last one is also that of the next
	// event. A journal that keeps nothing when it closes has none.
	Terms []Term
	// More says that events up to Head are missing because of the limit.
	HasMore bool
}

// Term is the stretch of a log that was written during one opening of the store. If a log loses its newest events, the seqs
// of these are used again, but in a later term. So a seq and its term identify an event, and a seq alone does not.
type Term struct {
	FirstSeq int64  // seq of its first event
	ID       string // unique to the opening
}

// Trace is the history in time of one turn, for inspection and replay.
type Trace struct {
	Turn    string        `json:"turn"`
	Commits []TraceCommit `json:"commits"`
	// Replaced are the texts that a replace took back, oldest first, up to 256 KiB in all.
	Replacements []TraceReplace `json:"replaced,omitempty"`
}

// TraceCommit says what one event brought, when it arrived and when it was durable.
type TraceCommit struct {
	Arrival int64      `json:"arrival"` // epoch milliseconds
	Commit  int64      `json:"commit"`
	Seq     int64      `json:"seq"`
	Type    event.Type `json:"type"`
	Message string     `json:"message,omitempty"`
	Part    string     `json:"part,omitempty"`
	Field   string     `json:"field,omitempty"` // the text's is empty, as in events
	End     int64      `json:"end,omitempty"`   // length of the field after it, bytes; only operations on a text have one
}

// TraceReplace is a text that was taken back.
type TraceReplace struct {
	Seq     int64  `json:"seq"` // of the replace
	Message string `json:"message"`
	Part    string `json:"part"`
	Field   string `json:"field,omitempty"`
	Text    string `json:"text"`
}

// DefaultTraceRetention is how long traces are kept: long enough to look into what users report.
const DefaultTraceRetention = 30 * 24 * time.Hour
