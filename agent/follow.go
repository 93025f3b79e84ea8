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
	// MaxKey bounds the key of an [Entry], in bytes.
	MaxKey = 256
	// MaxCursor bounds what [Sessions.Add] takes as cursor, in bytes.
	MaxCursor = 64 << 10
)

// Follower is an agent whose upstream sessions also change without Leat: another client sends a message, a schedule starts a run,
// an operator injects a note. A Follower reports those changes, so that each conversation shows all of its session.
type Follower interface {
	Agent

	// Follow reports what happens in the agent's sessions outside the turns that the gateway started. The gateway calls it once, in
	// a separate goroutine, and cancels ctx to end it: when the agent is removed or replaced, and when the gateway stops, before
	// it drains. Follow reconnects by itself. If it returns an error while ctx is not done, the gateway logs the error and calls
	// Follow again after a pause that grows from a second to five minutes. If it returns nil, the agent has nothing to follow, and
	// Follow is not called again.
	Follow(ctx context.Context, sessions Sessions) error

	// Observe emits the output of an external run, from its beginning or from state on, and returns at the run's end, as Run does. The
	// gateway calls it for each entry whose Run has no operations, and again after a restart with the state that was last
	// emitted. in.Key is the entry's key and in.Session the conversation's session; in.Message is empty unless the run answers a
	// message of the conversation, and in.History is empty. Several runs of a conversation may be observed at a time, while Run
	// or Resume answers another turn. If nil is returned before a turn.end was emitted, the turn ends as completed; an error
	// fails it.
	//
	// The turn is one like any other: the limits on its time and on silence hold (see [Prober]), its requests are answered as those of
	// other turns are (see [Emitter.Ask] and [Answerer]), and a person may stop it. Methods of the agent that take an Input get the
	// one that Observe has. If the cause of ctx is [ErrTurnOver], the turn was ended from outside: then Observe cancels the
	// upstream's run before it returns, as Run does. If it is another, the run continues upstream without Observe.
	Observe(ctx context.Context, in Input, state json.RawMessage, emitter *Emitter) error
}

// Sessions gives a [Follower] access to the conversations that keep a session with it (see [Emitter.KeepSession]). Its methods
// may be called from several goroutines.
type Sessions interface {
	// List returns every conversation that keeps a session with the agent, in any order.
	List(ctx context.Context) ([]Session, error)

	// Next blocks until a conversation has kept, changed or dropped its session since List was called, and returns it as it is then. The
	// Session field of a conversation that dropped its session is nil. Changes of one conversation may be coalesced, and a
	// conversation may come again that has not changed.
	Next(ctx context.Context) (Session, error)

	// Add records entries, in order, together with the cursor that follows them: either all of it is durable when Add returns, or
	// none is. It skips an entry that the conversation has already (see [Entry]), so a repeat is harmless; entries may be nil. It
	// returns [ErrNoSession] if the conversation is gone or keeps no session with this agent any longer, and an error that wraps
	// [event.ErrInvalid] for an entry that no conversation can take, such as one without a key: then too nothing is recorded. While
	// commits fail it waits, as long as ctx lets it.
	//
	// The cursor is JSON, at most [MaxCursor]; nil removes it. It is dropped together with the session, but not when another
	// session is kept in its place.
	Add(ctx context.Context, conversation string, entries []Entry, cursor json.RawMessage) error
}

// EachSession calls take for every conversation that keeps a session with the agent, and then for each that keeps, changes or drops
// one, until ctx is done or sessions fails. It returns that error.
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

	At     time.Time // time of the entry; the zero time, and one in the future, mean now
	Source string    // the upstream's name for the client or channel of the entry, which viewers see; empty if unknown

	// Message is a message of another client, or one that belongs to no run, such as an injected note. Its ID is ignored. If one of
	// its Parts is a text, Parts is the whole message; otherwise Text comes before them. Of a message with more bytes of text
	// and data than a message may have (max_message), only the beginning is stored, and a last part says that it was truncated. A
	// message without any content is not shown. Media with a data URL, or a path in the workspace, are stored as those of turns are.
	Message *Message
	Run     *Run
}

// Run is an upstream run that Leat did not start. It becomes a separate turn, which may overlap other turns.
type Run struct {
	// Answers is the key of the message entry, or the id of the conversation's message, that the run answers; empty if unknown. What
	// the conversation does not have is left out, here and in Parent.
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
	ID      string    `json:"id"`              // as [Attacher.Attach] takes it
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

// Attachment is an upstream session as a new conversation takes it over.
type Attachment struct {
	Session json.RawMessage // becomes [Input].Session
	Title   string
	Entries []Entry         // the history, oldest first; every run in it has operations
	Cursor  json.RawMessage // Follow continues here
}
