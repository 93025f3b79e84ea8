package gateway

import (
	"context"
	"io"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Attachments stores the files that messages show. Package attachments implements it. The gateway calls it when a message brings files,
// when a message that shows files is committed or removed, and when a conversation is deleted. All methods may be called by several
// goroutines at once.
type Attachments interface {
	// Start counts the stored files, and removes those that an earlier process left without a record.
	Start(ctx context.Context) error
	// Run removes expired files from time to time, until the context is done.
	Run(ctx context.Context)
	// StoredBytes returns how many bytes of files count for an owner, and for all owners of the tenant.
	StoredBytes(tenant, owner string) (ofOwner, ofTenant int64)
	// Receive stores the files that a command's message carries or names, and returns the message that shows the stored ones. missing
	// has an error for each part, by its index in the returned message, whose file can't be read.
	Receive(ctx context.Context, c Updater, p Principal, m CommandMessage) (message CommandMessage, missing map[int]*event.Error, err error)
	// Retain keeps the files that parts show for as long as the conversation. It is part of the commit that adds the parts. It returns
	// a *Rejection if a file is not there.
	Retain(ctx context.Context, t Tx, parts []event.Part) error
	// Release removes the files that only the removed messages show, after the commit.
	Release(t Tx, removedMessages, remainingMessages []*transcript.Message)
	// Detach is Release for messages that may be sent again: their files are removed after a day, unless a message shows them by then.
	Detach(ctx context.Context, t Tx, removedMessages, remainingMessages []*transcript.Message) error
	// Erase removes all files of a conversation, and unfinished uploads to it. It can be repeated.
	Erase(ctx context.Context, conversation string) error
	// OfTurn returns the files of the conversation as an agent that runs on behalf of p sees them.
	OfTurn(c Updater, p agent.Principal) TurnFiles
	// OfHistory returns a store for the files of a conversation that does not exist yet.
	OfHistory(conversation string, owner quota.Account) HistoryFiles
}

// TurnFiles are the files of a conversation as an agent sees them.
type TurnFiles interface {
	agent.FileSink
	agent.WorkspaceSink
	MediaStore
	// Bare returns media without the path of the workspace that they name, and whether they name one.
	Bare(m event.Media) (bare event.Media, hasPath bool)
}

// HistoryFiles stores the files of a conversation before the one commit that creates it.
type HistoryFiles interface {
	MediaStore
	// Size returns how many bytes were stored.
	Size() int64
	// Keys returns what to write with the commit.
	Keys() []journal.KeyValue
	// Committed counts the files for their owner. It is called once, after the commit.
	Committed()
	// Discard removes the files. It is called if the conversation was not created.
	Discard() error
}

// Updater changes one conversation.
type Updater interface {
	// ID returns the id of the conversation.
	ID() string
	// Update calls change alone in the goroutine that writes the conversation, and returns when what it added is durable. If change
	// returns an error, nothing is written. The errors of Update are those of [Gateway.Do].
	Update(ctx context.Context, change func(Tx) error) error
}

// Tx is one commit of a conversation that is being prepared. It must not be used after the function that received it has returned.
type Tx struct{ tx *tx }

// Conversation returns the id of the conversation.
func (t Tx) Conversation() string { return t.tx.conversation }

// Summary returns the conversation as the commit will leave it. It must not be changed.
func (t Tx) Summary() *journal.Summary { return t.tx.current() }

// Set writes a key with the commit. If value is nil, the key is deleted. expires is in epoch milliseconds; if it is 0, the key lives as
// long as the conversation.
func (t Tx) Set(key string, value []byte, expires int64) { t.tx.setKey(key, value, expires) }

// Reserve reserves quota, and returns a *Rejection if a limit is exceeded. If the commit fails, the quota is returned. It must be called
// before anything is added to the commit.
func (t Tx) Reserve(p Principal, n quota.Need) error { return t.tx.reserve(p, n) }

// AfterCommit calls fn in the writer after the commit is durable and shown. fn must not block.
func (t Tx) AfterCommit(fn func()) { t.tx.afterCommit(fn) }

// noAttachments is used if a gateway has no Attachments: media stay as they come, and agents can't store files.
type noAttachments struct{}

func (noAttachments) Start(context.Context) error { return nil }

func (noAttachments) Run(context.Context) {}

func (noAttachments) StoredBytes(string, string) (_, _ int64) { return 0, 0 }

func (noAttachments) Erase(context.Context, string) error { return nil }

func (noAttachments) Receive(_ context.Context, _ Updater, _ Principal, m CommandMessage) (CommandMessage, map[int]*event.Error, error) {
	return m, nil, nil
}

func (noAttachments) Retain(context.Context, Tx, []event.Part) error { return nil }

func (noAttachments) Release(Tx, []*transcript.Message, []*transcript.Message) {}

func (noAttachments) Detach(context.Context, Tx, []*transcript.Message, []*transcript.Message) error {
	return nil
}

func (noAttachments) OfTurn(Updater, agent.Principal) TurnFiles { return noFiles{} }

func (noAttachments) OfHistory(string, quota.Account) HistoryFiles { return noFiles{} }

// noFiles implements [TurnFiles] and [HistoryFiles] without any files.
type noFiles struct{}

func (noFiles) Brings(*event.Media) bool { return false }

func (noFiles) Store(_ context.Context, m event.Media) (event.Media, error) { return m, nil }

func (noFiles) Bare(m event.Media) (event.Media, bool) { return m, false }

func (noFiles) FilePath(context.Context, event.Media) string { return "" }

func (noFiles) FindFile(context.Context, string) (_ event.Media, _ bool, _ error) { return }

func (noFiles) Size() int64 { return 0 }

func (noFiles) Keys() []journal.KeyValue { return nil }

func (noFiles) Committed() {}

func (noFiles) Discard() error { return nil }

func (noFiles) PutPath(context.Context, string) (event.Media, error) {
	return event.Media{}, agent.ErrNoFiles
}

func (noFiles) PutFile(context.Context, agent.File, io.Reader) (event.Media, error) {
	return event.Media{}, agent.ErrNoFiles
}

func (noFiles) OpenFile(context.Context, event.Media) (io.ReadCloser, error) {
	return nil, agent.ErrNoFiles
}

// MediaStore stores the bytes that media carry in a data URL, or name by a path of the workspace.
type MediaStore interface {
	// Brings reports whether media carry or name bytes that have to be stored. m may be nil.
	Brings(m *event.Media) bool
	// Store stores the bytes and returns the media that show the stored file. If the file is refused or missing, the error is a
	// *Rejection, and the media returned are those to show instead: m without the path.
	Store(ctx context.Context, m event.Media) (event.Media, error)
}
