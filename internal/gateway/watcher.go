package gateway

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Watcher is notified of what happens in conversations, after it is durable and readers can see it.
//
// A conversation that is created or imported is reported as a change of its title; its older messages are not reported.
//
// The writers of many conversations call its method at the same time. It must return at once, because the conversation and often the
// journal are blocked meanwhile. It must not call the gateway, nor wait for a commit or for a lock that is held during one.
type Watcher interface {
	// Committed gets the events of one commit. s is the conversation after it. The watcher must not change or retain either.
	Committed(s *journal.Summary, events []event.Event)
}

// notifyCreated notifies the watchers that a conversation was created or imported.
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

// Outbox stores what a conversation's events cause, such as webhooks to deliver, in the same commit as the events, so that
// neither exists without the other after a crash. Entries are keys. Those that must outlive the conversation belong to a log
// of the outbox's own (KeyValue.Log) and must not contain text of the conversation.
//
// The writers of many conversations call its methods at the same time. Each method must return at once, because the
// conversation is blocked meanwhile.
type Outbox interface {
	// Entries returns the keys to write with events that are about to be committed. s is the conversation as the commit
	// will leave it. The outbox must not change or retain either.
	Entries(s *journal.Summary, events []event.Event) []journal.KeyValue
	// Finish reports the result of the commit of keys that Entries returned. If err is nil they are durable. If err wraps
	// journal.ErrUnknown they may be durable. With any other error nothing was written.
	Finish(keys []journal.KeyValue, err error)
}
