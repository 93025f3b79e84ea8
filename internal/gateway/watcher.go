package gateway

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Watcher is told of what happens in conversations, once it is durable and readers can see it.
//
// Of a new conversation and of an import it is told as of a change of the title, not of what was said elsewhere.
//
// Its method is called by the writers of many conversations at once and must return at once: the conversation stands still
// meanwhile. It may call nothing of the gateway.
type Watcher interface {
	// Committed is told of one commit's events. s is the conversation as the commit left it. Neither may be changed or kept.
	Committed(s *journal.Summary, events []event.Event)
}

// notifyCreated notifies the watchers of a conversation that was created or imported.
func notifyCreated(watchers []Watcher, s *journal.Summary) {
	for _, w := range watchers {
		w.Committed(s, []event.Event{{Seq: s.Head, At: nowMillis(), Type: event.ConversationUpdate, Body: &event.Body{Title: &s.Title}}})
	}
}

// FailureWatcher is a [Watcher] that gets the reasons for which turns fail, in words for operators.
type FailureWatcher interface {
	// TurnFailed is called before the end of the turn is committed. detail is one line, without secrets.
	TurnFailed(turn, detail string)
}
