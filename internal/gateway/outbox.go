package gateway

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

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
