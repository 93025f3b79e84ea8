package gateway

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Recorder writes down what follows from a conversation's events, such as webhooks to send, in the commit that holds
// them: so neither is ever there without the other, whatever dies in between. What it writes goes into keys; those that
// must outlive the conversation belong to a log of the recorder's own (KeyValue.Log) and hold none of its text.
//
// Its methods are called by the writers of many conversations at once, and each must return at once: the conversation
// stands still meanwhile.
type Recorder interface {
	// Record returns what to write with events that are about to be committed. s is the conversation as the commit will
	// leave it. Neither may be changed or kept.
	Record(s *journal.Summary, events []event.Event) []journal.KeyValue
	// Recorded tells what became of keys that Record returned: they are durable where err is nil, they may be where it
	// wraps journal.ErrUnknown, and otherwise nothing was written.
	Recorded(keys []journal.KeyValue, err error)
}

// recording is what the recorders add to one commit.
type recording struct {
	by   Recorder
	keys []journal.KeyValue
}

// record asks the recorders and adds what they give to the batch.
func (o *owner) record(t *tx, b *journal.Batch) []recording {
	if len(b.Events) == 0 || t.past {
		return nil
	}
	var all []recording
	for _, r := range o.g.cfg.Recorders {
		if keys := r.Record(t.current(), b.Events); len(keys) > 0 {
			b.Put = append(b.Put, keys...)
			all = append(all, recording{r, keys})
		}
	}
	return all
}

// recorded tells the recorders how the commit went.
func recorded(all []recording, err error) {
	for _, r := range all {
		r.by.Recorded(r.keys, err)
	}
}
