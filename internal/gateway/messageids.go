package gateway

import (
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// messageIDs is the set of the ids of a conversation's messages, older ones included. It is read from the whole log when it is
// first needed and updated with each commit from then on. An agent that follows a session reports the same messages again after
// each reconnect, so reading the log each time would be too slow.
type messageIDs struct {
	mu  sync.Mutex
	ids map[string]bool // nil: not read
}

// has reports whether a message is in the set. read returns the whole log, folded; has calls it if the set was not read yet.
func (m *messageIDs) has(id string, readLog func() (*transcript.Transcript, error)) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids == nil {
		history, err := readLog()
		if err != nil {
			return false, err
		}
		m.ids = make(map[string]bool, len(history.Messages))
		for _, msg := range history.Messages {
			m.ids[msg.ID] = true
		}
	}
	return m.ids[id], nil
}

// committed updates the set with the events of a commit.
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
