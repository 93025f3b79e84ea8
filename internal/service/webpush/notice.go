package webpush

import (
	"sync"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// kind is what a notice is about. Its values are part of the payload, which the service worker of the page reads.
type kind string

const (
	// kindEnd means that a turn has ended.
	kindEnd kind = "ended"
	// kindRequest means that a turn waits for an answer or an approval.
	kindRequest kind = "asked"
)

// Notice is what a user is notified of. Its JSON is the payload of a push message. It has no text of an answer.
type Notice struct {
	Kind         kind   `json:"kind"`
	Conversation string `json:"conversation"`
	Title        string `json:"title,omitempty"`
	Turn         string `json:"turn"`
	// Request is the id of the question; only with kindRequest.
	Request string `json:"request,omitempty"`
	// Outcome is only set with kindEnd.
	Outcome event.Outcome `json:"outcome,omitempty"`

	// Tenant and Subject are the user, the owner of the conversation. Both are empty for the operator.
	Tenant  string `json:"-"`
	Subject string `json:"-"`
}

// maxTitle limits the title in a notice, in bytes. Systems show about 50 characters.
const maxTitle = 200

// nested remembers the running turns that run inside another one. They are steps of an answer, and their ends are of
// no interest. Only starts say that a turn is nested, so this is forgotten at a restart: turns that were nested then
// get a notice.
type nested struct {
	mu    sync.Mutex
	turns map[string]bool
}

// notices returns the notices for the events of one commit. Turns of unlisted conversations are requests of programs to the model APIs. A
// turn that a user has stopped needs no notice. The caller must pass all commits of a conversation in order, because
// an end is judged by what its start said.
func (n *nested) notices(s *journal.Summary, events []event.Event) []Notice {
	var result []Notice
	for i := range events {
		e := &events[i]
		notice := Notice{Conversation: s.ID, Title: clip(s.Title), Turn: e.Turn, Tenant: s.Tenant, Subject: s.Owner}
		switch b := e.Get(); e.Type {
		case event.TurnStart:
			if b.Parent != "" {
				n.mark(e.Turn, true)
			}
			continue
		case event.TurnEnd:
			if n.mark(e.Turn, false) || b.Outcome == event.Cancelled {
				continue
			}
			notice.Kind, notice.Outcome = kindEnd, b.Outcome
		case event.TurnWait:
			if b.Request == nil {
				continue
			}
			notice.Kind, notice.Request = kindRequest, b.Request.ID
		default:
			continue
		}
		if !s.Unlisted {
			result = append(result, notice)
		}
	}
	return result
}

// mark records whether a turn is nested, and returns whether it was. Each turn that ends is forgotten, so memory is
// limited by the running turns.
func (n *nested) mark(turn string, isNested bool) (wasNested bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wasNested = n.turns[turn]
	switch {
	case !isNested:
		delete(n.turns, turn)
	case n.turns == nil:
		n.turns = map[string]bool{turn: true}
	default:
		n.turns[turn] = true
	}
	return wasNested
}

// clip shortens a title at the end of a character.
func clip(title string) string {
	if len(title) <= maxTitle {
		return title
	}
	end := maxTitle
	for !utf8.RuneStart(title[end]) {
		end--
	}
	return title[:end] + "…"
}
