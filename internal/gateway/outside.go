// Entries of followers as events: messages and runs that happened outside of Leat's turns.

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// The values under the key of an entry: the kind and id of the message or turn that it became, such as "message/ID" or "turn/ID".
const (
	// A repeated entry is recognized by its key, and later entries refer to what it became.
	becameMessage = "message/"
	becameTurn    = "turn/"
	becameNothing = "nothing/" // it had no content
)

// sourceUpstream is the source of a turn whose upstream doesn't name another.
const sourceUpstream = "upstream"

// outside is an entry of an upstream session, prepared for a conversation.
type outside struct {
	entry  *agent.Entry
	id     string        // of the message or turn that the entry becomes
	events []event.Event // of a message; empty if it has no content
	ops    []event.Event // of a run that is over
}

// outsides prepares entries for one conversation.
type outsides struct {
	maxMessage int // bytes of one message
	files      MediaStore
}

// prepare prepares an entry and stores its files. A file that is refused or missing becomes a failed part. Nothing is
// committed here. An entry that can't be an event gives an error that wraps [event.ErrInvalid].
func (x outsides) prepare(ctx context.Context, e *agent.Entry) (prepared *outside, err error) {
	prepared = &outside{entry: e, id: newID()}
	// The operations of a run are mapped later, when the ids of what it answers are known.
	if e.Run != nil {
		prepared.ops, err = storeMedia(ctx, slices.Clone(e.Run.Ops), x.files)
		return prepared, err
	}
	parts := slices.Clone(e.Message.Parts)
	if e.Message.Text != "" && !slices.ContainsFunc(parts, func(p event.Part) bool { return p.Kind == event.KindText }) {
		parts = append([]event.Part{{Kind: event.KindText, Text: e.Message.Text}}, parts...)
	}
	// The upstream has accepted the message, so it can't be refused here. It is cut instead, and says so.
	parts = cutParts(parts, x.maxMessage)
	var missing []event.Event
	for i := range parts {
		p := &parts[i]
		// Ids are needed now, because the failure of a file names its part.
		p.ID = fmt.Sprintf("p%d", i+1)
		if !x.files.Brings(p.Media) {
			continue
		}
		media, err := x.files.Store(ctx, *p.Media)
		if rejection, ok := errors.AsType[*Rejection](err); ok {
			err = nil
			missing = append(missing, event.Event{At: atOf(e, 0), Type: event.PartUpdate, Message: prepared.id, Part: p.ID, Body: &event.Body{
				State: event.PartFailed, Error: &event.Error{Code: rejection.Reason, Message: rejection.Message},
			}})
		}
		if err != nil {
			return nil, err
		}
		p.Media = &media
	}
	add := event.Event{At: atOf(e, 0), Type: event.MessageAdd, Message: prepared.id, Body: &event.Body{Role: e.Message.Role, Source: e.Source, Parts: parts}}
	if err := add.Validate(); err != nil {
		return nil, fmt.Errorf("entry %q: %w", e.Key, err)
	}
	if len(parts) > 0 {
		prepared.events = append([]event.Event{add}, missing...)
	}
	return prepared, nil
}

// became returns what is stored under the entry's key.
func (o *outside) became() string {
	switch {
	case o.entry.Run != nil:
		return becameTurn + o.id
	case len(o.events) == 0:
		return becameNothing
	}
	return becameMessage + o.id
}

// start returns the event that starts the turn of a run. parent and answers may be empty.
func (o *outside) start(name, answers, parent string) event.Event {
	return event.Event{At: atOf(o.entry, 0), Type: event.TurnStart, Turn: o.id, Body: &event.Body{
		Agent: name, Answers: answers, Parent: parent, Source: cmp.Or(o.entry.Source, sourceUpstream),
	}}
}

// completeTurn returns the events of a run that is over, from its start to its only end, and how many operations had no effect.
// An operation that doesn't apply fails the turn, as it does in a live turn.
func (o *outside) completeTurn(name, answers, parent string) (turnEvents []event.Event, droppedOps int64) {
	turnEvents = []event.Event{o.start(name, answers, parent)}
	// One operation at a time, so that each keeps its own time, and so that those before an invalid one are kept.
	m := dialect.NewMapper(o.id, newID)
	at := atOf(o.entry, 0)
	end := event.Event{Type: event.TurnEnd, Body: &event.Body{
		Outcome: event.Failed, Error: &event.Error{Code: codeCutShort, Message: "the session does not contain the end of the run", Retryable: true},
	}}
	for i := range o.ops {
		at = max(at, atOf(o.entry, o.ops[i].At))
		events, err := m.Map(o.ops[i:i+1], at)
		turnEvents = append(turnEvents, events...)
		if err != nil {
			end.Body.Error = &event.Error{Code: codeStream, Message: err.Error()}
			break
		}
	}
	droppedOps = m.DroppedOps
	events, _ := m.Map([]event.Event{end}, at) // always valid, and without effect if the run has ended
	return append(turnEvents, events...), droppedOps
}

// atOf returns when a part of an entry happened, in epoch milliseconds: at if it is known, otherwise the time of the entry. It
// is never in the future.
func atOf(e *agent.Entry, at int64) int64 {
	if at == 0 && !e.At.IsZero() {
		at = e.At.UnixMilli()
	}
	if latest := nowMillis(); at <= 0 || at > latest {
		return latest
	}
	return at
}

// cutParts cuts a message after maxBytes. An additional part at the end says how large the message was. It doesn't
// change parts.
func cutParts(parts []event.Part, maxBytes int) []event.Part {
	size := 0
	for _, p := range parts {
		size += len(p.Text) + len(p.Data)
	}
	if size <= maxBytes {
		return parts
	}
	var result []event.Part
	budget := maxBytes
	for _, p := range parts {
		if len(p.Data) > budget {
			continue // half of a JSON value is useless
		}
		if len(p.Text) > budget {
			p.Text = strings.ToValidUTF8(p.Text[:budget], "")
		}
		budget -= len(p.Text) + len(p.Data)
		if p.Text != "" || p.Data != nil || p.Media != nil {
			result = append(result, p)
		}
	}
	return append(result, event.Part{Kind: event.KindText, Text: fmt.Sprintf("[The message has %d bytes. Only the first %d are stored here.]", size, maxBytes-budget)})
}
