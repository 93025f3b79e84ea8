package event

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

const (
	// MaxID bounds ids and upstream keys, in bytes: long enough for any known upstream, short enough to index.
	MaxID = 256
	// MaxText bounds the text of one event, in bytes. A longer text comes in several appends.
	MaxText = 8 << 20
)

// Validate reports, wrapping [ErrInvalid], what makes e impossible to apply by itself: an unknown type, a missing or
// oversize id, a missing or unknown value. Whether it fits its log is the fold's to say.
func (e *Event) Validate() error {
	b := e.Get()
	for _, id := range []struct{ name, v string }{{"turn", e.Turn}, {"message", e.Message}, {"part", e.Part}, {"agent", b.Agent}, {"answers", b.Answers}, {"parent", b.Parent}, {"call", b.Call}} {
		if err := CheckID(id.name, id.v); err != nil {
			return err
		}
	}
	if len(e.Text) > MaxText {
		return fmt.Errorf("%w: %s: text of %d bytes, at most %d", ErrInvalid, e.Type, len(e.Text), MaxText)
	}
	need := func(name, v string) error {
		if v == "" {
			return fmt.Errorf("%w: %s: %s is missing", ErrInvalid, e.Type, name)
		}
		return nil
	}
	switch e.Type {
	case MessageAdd:
		for _, p := range b.Parts {
			if err := oneOf(e.Type, "part kind", p.Kind, KindText, KindReasoning, KindTool, KindStatus, KindMedia, KindData); err != nil {
				return err
			}
		}
		fallthrough
	case MessageStart:
		if err := need("message", e.Message); err != nil {
			return err
		}
		return oneOf(e.Type, "role", b.Role, User, Assistant, System)
	case MessageUpdate:
		if err := need("message", e.Message); err != nil {
			return err
		}
		return oneOf(e.Type, "state", b.MessageState, MessageStarted, MessageQueued, MessageSteered, MessageJoined, MessageRejected)
	case MessageEnd:
		return need("message", e.Message)
	case TurnQueue, TurnStart, TurnUpdate:
		return nil
	case TurnWait:
		if b.Request == nil || b.Request.ID == "" {
			return need("request", "")
		}
		if err := CheckID("request", b.Request.ID); err != nil {
			return err
		}
		return oneOf(e.Type, "request kind", b.Request.Kind, RequestApproval, RequestInput)
	case TurnResume:
		if b.Answer == nil || b.Answer.ID == "" {
			return need("answer", "")
		}
		return CheckID("answer", b.Answer.ID)
	case TurnEnd:
		return oneOf(e.Type, "outcome", b.Outcome, Completed, Failed, Cancelled, Interrupted)
	case PartStart, PartAppend, PartReplace, PartUpdate, PartEnd:
		if err := need("message", e.Message); err != nil {
			return err
		}
		if err := need("part", e.Part); err != nil {
			return err
		}
		switch e.Type {
		case PartStart:
			if err := oneOf(e.Type, "join", b.Join, "", JoinBlank); err != nil {
				return err
			}
			return oneOf(e.Type, "kind", b.Kind, KindText, KindReasoning, KindTool, KindStatus, KindMedia, KindData)
		case PartAppend, PartReplace:
			if e.Offset < 0 {
				return fmt.Errorf("%w: %s: offset %d", ErrInvalid, e.Type, e.Offset)
			}
			return oneOf(e.Type, "field", Field(e.Field.Name()), Field(Text.Name()), Input, Output, Stderr)
		case PartUpdate:
			return oneOf(e.Type, "state", b.State, "", PartRunning, PartDone, PartFailed, PartDenied)
		}
		return nil
	case ConversationUpdate, ConversationTruncate, ConversationDelete:
		return nil
	case Record:
		return need("kind", b.RecordKind)
	}
	return fmt.Errorf("%w: type %q is unknown", ErrInvalid, e.Type)
}

func oneOf[T ~string](t Type, name string, v T, valid ...T) error {
	if slices.Contains(valid, v) {
		return nil
	}
	return fmt.Errorf("%w: %s: %s %q is unknown", ErrInvalid, t, name, v)
}

// CheckID reports, wrapping [ErrInvalid], why v can't be an id: too long, not UTF-8, or with control characters.
// The empty id passes.
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
