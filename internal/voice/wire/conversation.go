package wire

import (
	"context"

	"github.com/leat-dev/leat/internal/voice"
)

// Conversation is a conversation as one person uses it by voice.
type Conversation interface {
	// Follow passes the answers of the conversation to speech until ctx ends or the person loses access: those that run or begin later,
	// and that of the turn named resume, even if it has ended.
	Follow(ctx context.Context, speech Speech, resume string) error
	// Send adds a message of the person, which starts a turn. A message with a key that was used before is not added again. An error that
	// the person may see is a [*Refusal].
	Send(ctx context.Context, key, text string) (Delivery, error)
	// Stop ends a turn. It returns nil if the turn has ended already.
	Stop(ctx context.Context, turn string) error
	// MarkHeard stores how far the person has heard an answer.
	MarkHeard(ctx context.Context, h voice.HeardMark) error
	// HasOtherViewers reports whether other people follow the conversation now.
	HasOtherViewers() bool
}

// Delivery is what became of a message.
type Delivery struct {
	// SteeredTurn is the running turn that got the message. It is empty if the message has a turn of its own.
	SteeredTurn string
}

// Speech is the part of a [voice.Session] that a follower needs.
type Speech interface {
	// Update sets the visible text of a turn; see [voice.Session.Update].
	Update(turn, text string, isEnded bool)
	// Post sends a frame to the client.
	Post(f voice.Frame)
}

var _ Speech = (*voice.Session)(nil)

// TurnFailed returns the frame that says why a turn has failed.
func TurnFailed(turn, message string) voice.Frame {
	f := voice.Error("turn_failed", message, "Try again.")
	f.Turn = turn
	return f
}
