package gateway

import (
	"context"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// messageIDs are the ids of a conversation's messages, of those too that are older than what is in memory. They are read from the log
// at the first question and kept current from then on.
type messageIDs struct {
	mu  sync.Mutex
	ids map[string]bool // nil: not read
}

// has reports whether a message is there that is not in memory.
func (m *messageIDs) has(ctx context.Context, o *owner, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids == nil {
		earlier := false
		o.feed.View(func(t *transcript.Transcript) { earlier = t.Earlier })
		if !earlier {
			return false, nil
		}
		whole, _, err := o.whole(ctx)
		if err != nil {
			return false, err
		}
		m.ids = make(map[string]bool, len(whole.Messages))
		for _, msg := range whole.Messages {
			m.ids[msg.ID] = true
		}
	}
	return m.ids[id], nil
}

// committed takes the events of each commit.
func (m *messageIDs) committed(events []event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids == nil {
		return
	}
	for i := range events {
		switch e := &events[i]; e.Type {
		case event.MessageAdd, event.MessageStart:
			m.ids[e.Message] = true
		case event.ConversationTruncate:
			m.ids = nil
			return
		}
	}
}
