package channel

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/leat-dev/leat/event"
)

// Channel is one bot on one chat platform. Its methods may be called concurrently.
type Channel interface {
	// Name is the channel's name in the configuration.
	Name() string
	// Platform is the name of the platform, such as telegram.
	Platform() string
	// Run receives messages and passes them to inbox, until ctx ends. It retries after every error that may pass, and returns an
	// error if the platform refuses the bot, for example because of an invalid token.
	Run(ctx context.Context, inbox Inbox) error
	// Send sends one message, in parts if it is too long. It retries until ctx ends. [ErrUnreachable] means that retries are
	// useless.
	Send(ctx context.Context, m OutboundMessage) error
	Capabilities() CapabilitySet
}

// StreamChannel is a channel that can show an answer while it is written. The pipeline finds it by a type assertion.
type StreamChannel interface {
	Channel
	// SendStream delivers one turn to a chat: it shows what events contain, and then the final answer. It receives from events
	// until the channel is closed; the time that it takes between two receptions is backpressure, because what is committed
	// meanwhile is merged into the next event. When it returns without an error, the final answer has been sent.
	//
	// If ctx ends, SendStream returns its error, and the turn is delivered again later, with the state that it last saved.
	SendStream(ctx context.Context, chatID string, metadata StreamMetadata, events <-chan StreamEvent) error
}

// WebhookChannel is a channel that receives messages by requests of its platform. The pipeline finds it by a type assertion.
type WebhookChannel interface {
	Channel
	// ServeWebhook answers a request of the platform. Anybody can send one, so it begins with the check of a signature or a secret.
	// A message is confirmed to the platform when inbox has stored it.
	ServeWebhook(w http.ResponseWriter, r *http.Request, inbox Inbox)
}

// Inbox accepts the messages that a channel receives.
type Inbox interface {
	// Receive stores a message and queues it. It doesn't wait for the chat, so a poll loop can call it. When it returns without an
	// error, the message survives a crash, and the platform need not deliver it again.
	Receive(ctx context.Context, m InboundMessage) error
}

// FailureInbox is an inbox that records failures which the platform reports later, after it has accepted a message. The inbox of a
// pipeline is one.
type FailureInbox interface {
	Inbox
	// Fail records that a message to a chat was not delivered. The error is shown to operators, so it has no text of the message.
	Fail(ctx context.Context, chatID string, err error)
}

// CapabilitySet says what a channel can do besides sending text.
type CapabilitySet struct {
	Reactions  bool
	FileUpload bool
	// ReactiveOnly means that the bot can only answer a recent message and can't begin a conversation.
	ReactiveOnly bool
	// Idempotent means that a message which is sent again with the same [OutboundMessage.Key] doesn't appear twice.
	Idempotent bool
}

// StreamHints identify a delivery.
type StreamHints struct {
	Channel, ChatID, Conversation, Turn string
}

// StreamDelegate observes the delivery of every streamed turn, also of those that fail. Traces and metrics are made with it.
type StreamDelegate interface {
	// OnStreamBegin is called before SendStream, which gets the context that it returns.
	OnStreamBegin(ctx context.Context, hints StreamHints) context.Context
	// OnStreamEnd gets the error of SendStream.
	OnStreamEnd(ctx context.Context, hints StreamHints, err error)
}

// StreamMetadata describes the turn that SendStream delivers.
type StreamMetadata struct {
	Conversation, Turn string
	// Agent is the name of the agent that answers.
	Agent string
	// ReplyTo is the platform's id of the message that the turn answers. It is empty if the message came from elsewhere, or
	// before a restart of the gateway.
	ReplyTo string
	// State is what Save stored last for this turn, or nil. It isn't nil if a delivery was interrupted.
	State json.RawMessage
	// OpenMedia opens a file that the turn shows. If it isn't stored by the gateway, the error is [fs.ErrNotExist].
	OpenMedia func(ctx context.Context, m event.Media) (io.ReadCloser, error)
	// Speak returns the answer, which is Markdown, as a voice note in Ogg Opus, or nil if nothing of it can be said. It is nil unless the
	// person spoke and the channel is a [VoiceChannel].
	Speak func(ctx context.Context, answer string) ([]byte, error)
	// Save stores the state of the delivery and returns when it is durable. A channel saves before a request that creates a
	// message, and again when it knows the message's id. So a later delivery knows which messages exist, or that one may exist.
	Save func(ctx context.Context, state any) error
}
