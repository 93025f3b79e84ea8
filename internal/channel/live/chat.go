package live

import (
	"context"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
)

// Rules are what a platform demands and can do.
type Rules struct {
	// Platform is the name of the platform, such as telegram.
	Platform string
	// Format writes texts. MaxText is the limit of a message, in the format's unit. The limit is applied after rendering, because
	// markup and escapes can make a text longer than its source.
	Format  markup.Format
	MaxText int
	// Cursor follows a text that grows. It may be empty. It distinguishes an answer that is being written from one that is complete.
	// It is a part of every live message and is measured with it.
	Cursor string
	// InPlace means that the messages with the growing text become the answer. Otherwise the answer is sent as new messages, which
	// notify, and those are deleted. The growing text is that of the whole turn then, and otherwise that of the current iteration. In
	// place is right if a message that grows may notify once at its beginning. It is wrong if an edit doesn't notify and people would
	// miss the end of a long turn.
	InPlace bool
	// Idempotent means that a message which is posted again with the same key doesn't appear twice. Then a request without an answer
	// is repeated until it is answered. Without it a message of the answer is never sent twice, so one whose request got no answer
	// may be missing.
	Idempotent bool
	// HasButtons means that messages can have buttons. Otherwise questions name their choices. A person
	// then answers with a message.
	HasButtons bool
	// TypingLife is the time after which [Chat.ShowTyping] is repeated. It is a little less than the time for which the platform
	// shows it, so the display has no gaps.
	TypingLife time.Duration
	// MaxFile is the largest file that [FileChat.SendFile] takes, in bytes.
	MaxFile int64
}

// Place is where a chat's requests are counted.
type Place struct {
	// ID is the chat for which the platform limits requests. Several topics may share one. Its form is that of the channel; the
	// engine only compares ids.
	ID string
	// Gap is the least time between two messages or edits. A draft, a deletion and "typing" don't count, but none of them is sent
	// during a penalty.
	Gap time.Duration
}

// Chat is a chat of a bot, for one delivery. Its methods make one request each, and are called one at a time. Their errors are
// described at [ErrUnsent]; what a caller can't do anything about, such as an edit that changes nothing, is no error. The ids of
// messages are those of [channel.InboundMessage].
type Chat interface {
	// Post creates a message and returns its id. If the key of the post is that of an earlier request, and the platform or the
	// channel can find the earlier message, its id is returned and nothing is created.
	Post(ctx context.Context, p Post) (id string, err error)
	// Edit replaces what a message shows. The kind of a message never changes. A question is edited when it was answered, to remove
	// its buttons. A post always has the whole new text, so an edit that was lost needs no repetition once a newer one has arrived.
	Edit(ctx context.Context, id string, p Post) error
	// Delete removes a message of the bot. The error for one that is already gone is ErrMissing.
	Delete(ctx context.Context, id string) error
	// ShowTyping shows that an answer is being written. A chat without such a display does nothing and returns nil.
	ShowTyping(ctx context.Context) error
}

// DraftChat is a chat that can show a text without a message. The draft disappears by itself, or when a message is posted.
type DraftChat interface {
	Chat
	// DraftTimes returns the least time between two drafts, and the time after which an unchanged one is shown again.
	DraftTimes() (gap, life time.Duration)
	// ShowDraft shows a text in place of the one before. Only the newest draft of a delivery is visible.
	ShowDraft(ctx context.Context, p Post) error
}

// DraftFormatter is a chat whose drafts have another format than its messages.
type DraftFormatter interface {
	// DraftFormat returns the format and the limit of a draft, in the format's unit. They may change when a draft was refused. The
	// cursor of the rules is in Text only.
	DraftFormat() (format markup.Format, maxText int)
}

// ReactChat is a chat in which the bot can react to a message. A reaction shows which message is being answered.
type ReactChat interface {
	Chat
	// React sets the bot's reaction to a message, or removes it if emoji is empty.
	React(ctx context.Context, id, emoji string) error
}

// FileChat is a chat that takes files.
type FileChat interface {
	Chat
	// SendFile posts a file as a separate message and returns the id of the message. As with Post, the key makes a repetition
	// recognizable. The file is within [Rules.MaxFile].
	SendFile(ctx context.Context, f File) (id string, err error)
}

// VoiceChat is a chat that takes voice notes.
type VoiceChat interface {
	Chat
	// SendVoice posts a voice note, in Ogg Opus, as a separate message and returns the id of the message.
	SendVoice(ctx context.Context, f File) (id string, err error)
}

// FindChat is a chat that can look for a message whose creation got no answer.
type FindChat interface {
	Chat
	// Find returns the id of the lost message, or "" if it can't be found. It may make several requests, each by request, which
	// waits until a request is allowed.
	Find(ctx context.Context, gap Gap, request func(send func() error) error) (id string, err error)
}

// Kind says what a message is for.
type Kind string

// The kinds of messages. Text and Card show a running turn and don't notify unless the text becomes the answer in place.
const (
	Text     Kind = "text"
	Card     Kind = "card"
	Question Kind = "question"
	Answer   Kind = "answer" // also other messages that have to arrive
)

// Post is what a message shows.
type Post struct {
	// Kind decides how the message looks and whether it can be found again. An edit has the kind of the message that it changes,
	// except for the last edit of a text, which is of the kind Text and not live.
	Kind Kind
	// Text is set unless the kind is Card.
	Text markup.Message
	// Status is set if the kind is Card.
	Status *Status
	// Buttons are the choices of an open question.
	Buttons []Button
	// IsLive is set for a text that will be edited again.
	IsLive bool
	// IsSilent asks for no notification.
	IsSilent bool
	// ReplyTo is the id of the message that this one answers, or empty.
	ReplyTo string
	// Key is the same if the message is posted again. It is empty for edits.
	Key string
}

// Button is a choice of a question. Pressing it has the effect of the command, which is a text of [channel.AnswerCommand].
type Button struct {
	Text, Command string
}

// File is a file of an agent.
type File struct {
	// The name has no path. It is the agent's, so a platform may have to escape it.
	Name, Type string // Type is the media type
	// The whole file is in memory, because a refused or lost request has to be repeated with the same bytes.
	Content []byte
	Key     string // as in [Post]
}

// Gap is where a message is whose creation got no answer: between two messages of the chat. An id is empty if it is not known.
type Gap struct {
	Key    string `json:"key"`
	After  string `json:"after,omitempty"`
	Before string `json:"before,omitempty"`
}
