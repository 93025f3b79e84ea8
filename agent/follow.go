package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/leat-dev/leat/event"
)

// ErrUnknownSession is returned by [Attacher.Attach] if the upstream has no session of that name.
var ErrUnknownSession = errors.New("agent: unknown session")

const (
	// MaxKey is the maximum size of the key of an [Entry], in bytes.
	MaxKey = 256
	// MaxCursor is the maximum size of the cursor of [Sessions.Add], in bytes.
	MaxCursor = 64 << 10
)

// Follower is an agent whose upstream sessions also change without Leat: another client sends a message, a schedule starts a run,
// an operator injects a note. A Follower reports those changes, so that each conversation shows all of its session.
type Follower interface {
	Agent

	// Follow reports what happens in the agent's sessions outside the turns that the gateway started. The
	// gateway calls it once, in a separate goroutine, and cancels ctx to end it: when the agent is removed or
	// replaced, and when the gateway stops, before it waits for running turns. Follow reconnects by itself. If
	// it returns an error while ctx is not done, the gateway logs the error and calls Follow again after a
	// pause that grows from a second to five minutes. If it returns nil, the agent has nothing to follow, and
	// Follow is not called again.
	Follow(ctx context.Context, sessions Sessions) error

	// Observe emits the output of an external run, from its beginning or from state on, and returns at the
	// run's end, as Run does. The gateway calls it for each entry whose Run has no operations, and again after
	// a restart with the state that was last emitted. in.Key is the entry's key and in.Session the
	// conversation's session. in.Message is empty unless the run answers a message of the conversation, and
	// in.History is empty. Several runs of a conversation may be observed at a time, while Run or Resume
	// answers another turn. If Observe returns nil before it has emitted a turn.end, the turn ends as
	// completed; an error fails it.
	//
	// The turn is like any other: it has the limits on its duration and on silence (see [Prober]), users answer
	// its requests (see [Emitter.Ask] and [Answerer]), and a user may stop it. Methods of the agent that have a
	// parameter of type Input get the same one as Observe. If the cause of ctx is [ErrTurnOver], the turn was
	// ended from outside, and Observe cancels the upstream's run before it returns, as Run does. With another
	// cause the run continues upstream without Observe.
	Observe(ctx context.Context, in Input, state json.RawMessage, emitter *Emitter) error
}

// Sessions gives a [Follower] access to the conversations that have a stored session of the agent (see
// [Emitter.KeepSession]). Its methods may be called from several goroutines.
type Sessions interface {
	// List returns every conversation that has a session of the agent, in any order.
	List(ctx context.Context) ([]Session, error)

	// Next blocks until a conversation has stored, changed or deleted its session since List was called, and
	// returns its current state. The Session field is nil if the session was deleted. Several changes of one
	// conversation may be returned once, and an unchanged conversation may be returned again.
	Next(ctx context.Context) (Session, error)

	// Add records entries, in order, together with the cursor that follows them. When it returns nil, all of it
	// is durable; after an error nothing was recorded. It skips an entry that the conversation already has (see
	// [Entry]), so a repeated call is harmless; entries may be nil. It returns [ErrNoSession] if the
	// conversation was deleted or no longer has a session of this agent, and an error that wraps
	// [event.ErrInvalid] for an invalid entry, such as one without a key. If commits fail, Add retries until
	// ctx is done.
	//
	// The cursor is JSON of at most [MaxCursor] bytes; nil deletes it. It is deleted together with the session,
	// but not when another session replaces the session.
	Add(ctx context.Context, conversation string, entries []Entry, cursor json.RawMessage) error
}

// EachSession calls take for every conversation that has a session of the agent, and then for each conversation
// that stores, changes or deletes its session. It returns the error of sessions, which is that of ctx when ctx
// is done.
func EachSession(ctx context.Context, sessions Sessions, take func(Session)) error {
	initial, err := sessions.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range initial {
		take(s)
	}
	for {
		s, err := sessions.Next(ctx)
		if err != nil {
			return err
		}
		take(s)
	}
}

// Session is a conversation together with its upstream session.
type Session struct {
	Conversation string
	Principal    Principal       // the conversation's owner
	Session      json.RawMessage // as stored with [Emitter.KeepSession]; nil if it was deleted
	Cursor       json.RawMessage // of the last call of [Sessions.Add], or of the [Attachment]; nil if it wasn't set
}

// Entry is one thing that happened in a session outside Leat's turns: a whole message, or a run. Exactly one of the two is set.
type Entry struct {
	// Key identifies the entry within its session, such as the upstream's id of the row or of the run. The gateway skips an entry
	// whose key was added before. It also skips one whose key is the id of a turn or message of the conversation, or of the upstream
	// run of a turn in progress, because the upstream then reports a turn of Leat. At most [MaxKey] bytes.
	Key string

	// At is the time of the entry; the zero time, and one in the future, mean now. Source is the upstream's
	// name for the client or channel of the entry, which viewers see; it is empty if unknown.
	At     time.Time
	Source string

	// Message is a message of another client, or one that belongs to no run, such as an injected note. Its ID
	// is ignored. If one of its Parts is a text, Parts is the whole message; otherwise Text precedes them. If
	// the text and data exceed the limit of a message (max_message), only their beginning is stored, with a
	// last part that says that the message was truncated. A message without any content is not shown. Media
	// with a data URL, or with a path in the workspace, are stored as those of turns are.
	Message *Message
	Run     *Run
}

// Run is an upstream run that Leat did not start. It becomes a separate turn, which may overlap other turns.
type Run struct {
	// Answers is the key of the message entry, or the id of the conversation's message, that the run answers;
	// it is empty if unknown. References to messages and turns that the conversation doesn't have are left out,
	// here and in Parent.
	Answers string
	// Parent is the key of the run, or the id of the turn, that started this run. It is empty if the run has no parent. The run
	// may outlive its parent.
	Parent string
	// Ops are all operations of a run that is already over, including its turn.end. If an operation has a time (At), the gateway uses it. If
	// Ops is nil, the run is live, and the gateway calls Observe with State. Keys of turns, messages and parts in Ops are those of
	// one run, as in [Emitter.Emit].
	Ops   []event.Event
	State json.RawMessage
}

// SessionInfo describes an upstream session to an operator who chooses which one to attach.
type SessionInfo struct {
	ID      string    `json:"id"`              // for [Attacher.Attach]
	Title   string    `json:"title,omitempty"` // as the upstream shows it
	Updated time.Time `json:"updated,omitzero"`
}

// Attacher is a Follower that can attach an existing upstream session to a new conversation.
type Attacher interface {
	Follower

	// ListSessions returns the upstream's sessions, newest first, at most limit.
	ListSessions(ctx context.Context, limit int) ([]SessionInfo, error)

	// Attach returns what a conversation needs to continue in the session. If history is set, the result has the session's
	// messages and runs so far; otherwise the conversation begins with what happens next. It returns
	// [ErrUnknownSession] if the upstream has no such session.
	Attach(ctx context.Context, session string, history bool) (Attachment, error)
}

// Attachment is an upstream session from which a new conversation starts.
type Attachment struct {
	Session json.RawMessage // becomes [Input].Session
	Title   string
	Entries []Entry         // the history, oldest first; every run in it has operations
	Cursor  json.RawMessage // Follow continues here
}
