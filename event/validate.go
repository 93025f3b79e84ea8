package event

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

const (
	// MaxID is the limit of ids and upstream keys, in bytes: above the ids of every known upstream, and small enough for indexes and states.
	MaxID = 256
	// MaxText is the limit of the text of one event, in bytes. A longer text is divided into several appends.
	MaxText = 8 << 20
)

// Validate reports why e can't be applied to any log: an unknown type, a missing or oversize id, a missing or unknown value. Its errors wrap
// [ErrInvalid]. Whether e fits its own log, for example whether its message exists, is decided by package transcript.
func (e *Event) Validate() error {
	b := e.Get()
	for _, id := range [...]struct{ name, v string }{{"turn", e.Turn}, {"message", e.Message}, {"part", e.Part}, {"agent", b.Agent}, {"answers", b.Answers}, {"parent", b.Parent}, {"call", b.Call}} {
		if err := CheckID(id.name, id.v); err != nil {
			return err
		}
	}
	if len(e.Text) > MaxText {
		return fmt.Errorf("%w: %s: text of %d bytes, at most %d", ErrInvalid, e.Type, len(e.Text), MaxText)
	}
	switch e.Type {
	case MessageAdd:
		for _, p := range b.Parts {
			if err := oneOf(e.Type, "part kind", p.Kind, partKinds[:]...); err != nil {
				return err
			}
		}
		fallthrough
	case MessageStart:
		return cmp.Or(e.require("message", e.Message), oneOf(e.Type, "role", b.Role, User, Assistant, System))
	case MessageUpdate:
		return cmp.Or(e.require("message", e.Message),
			oneOf(e.Type, "state", b.MessageState, MessageStarted, MessageQueued, MessageSteered, MessageJoined, MessageRejected))
	case MessageEnd:
		return e.require("message", e.Message)
	case TurnWait:
		if b.Request == nil || b.Request.ID == "" {
			return e.require("request", "")
		}
		return cmp.Or(CheckID("request", b.Request.ID), oneOf(e.Type, "request kind", b.Request.Kind, RequestApproval, RequestInput))
	case TurnResume:
		if b.Answer == nil || b.Answer.ID == "" {
			return e.require("answer", "")
		}
		return CheckID("answer", b.Answer.ID)
	case TurnEnd:
		return oneOf(e.Type, "outcome", b.Outcome, Completed, Failed, Cancelled, Interrupted)
	case PartStart, PartAppend, PartReplace, PartUpdate, PartEnd:
		return cmp.Or(e.require("message", e.Message), e.require("part", e.Part), e.validatePart(b))
	case TurnQueue, TurnStart, TurnUpdate, ConversationUpdate, ConversationTruncate, ConversationDelete:
		return nil
	case Record:
		return e.require("kind", b.RecordKind)
	}
	return fmt.Errorf("%w: type %q is unknown", ErrInvalid, e.Type)
}

// validatePart checks the values that an event of a part needs besides its ids.
func (e *Event) validatePart(b *Body) error {
	switch e.Type {
	case PartStart:
		return cmp.Or(oneOf(e.Type, "join", b.Join, "", JoinBlank), oneOf(e.Type, "kind", b.Kind, partKinds[:]...))
	case PartAppend, PartReplace:
		if e.Offset < 0 {
			return fmt.Errorf("%w: %s: offset %d", ErrInvalid, e.Type, e.Offset)
		}
		return oneOf(e.Type, "field", Field(e.Field.Name()), Field(Text.Name()), Input, Output, Stderr)
	case PartUpdate:
		return oneOf(e.Type, "state", b.State, "", PartRunning, PartDone, PartFailed, PartDenied)
	}
	return nil
}

var partKinds = [...]PartKind{KindText, KindReasoning, KindTool, KindStatus, KindMedia, KindData}

// require returns an error if a value that every event of e's type needs is empty.
func (e *Event) require(name, v string) error {
	if v == "" {
		return fmt.Errorf("%w: %s: %s is missing", ErrInvalid, e.Type, name)
	}
	return nil
}

// oneOf returns an error if v isn't one of the valid values.
func oneOf[T ~string](t Type, name string, v T, valid ...T) error {
	if slices.Contains(valid, v) {
		return nil
	}
	return fmt.Errorf("%w: %s: %s %q is unknown", ErrInvalid, t, name, v)
}

// CheckID returns an error that wraps [ErrInvalid] if v can't be an id: it is longer than [MaxID], isn't UTF-8, or has control
// characters. name says in the error which id it is. An empty id is valid here, because many events have none.
func CheckID(name, v string) error {
	if len(v) > MaxID {
		return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrInvalid, name, len(v), MaxID)
	}
	for _, r := range v {
		if r < 0x20 || r == 0x7f {
			return fmt.Errorf("%w: %s has a control character", ErrInvalid, name)
		}
	}
	if !utf8.ValidString(v) {
		return fmt.Errorf("%w: %s is not UTF-8", ErrInvalid, name)
	}
	return nil
}
