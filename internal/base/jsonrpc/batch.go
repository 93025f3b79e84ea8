package jsonrpc

import (
	"encoding/json"
	"sync"
)

// maxBatch is the limit of the messages in a batch. Each of them is carried out in a goroutine.
const maxBatch = 1000

// AcceptBatches makes the connection accept batches, which are arrays of messages, or refuse them. Some versions of the protocols on top demand
// them, and later ones have removed them. At first they are refused.
func (c *Conn) AcceptBatches(accept bool) { c.hasBatches.Store(accept) }

// batch collects the responses to the messages of a batch. They are sent together, after the last one.
type batch struct {
	conn *Conn

	mu        sync.Mutex
	pending   int // messages that may still get a response
	responses []*message
}

// receiveBatch handles the messages of a batch in their order. Its requests are carried out at the same time.
func (c *Conn) receiveBatch(line []byte) {
	var list []json.RawMessage
	var failure *Error
	switch err := json.Unmarshal(line, &list); {
	case err != nil:
		failure = Errorf(parseError, "invalid batch: %v", err)
	case len(list) == 0 || len(list) > maxBatch:
		failure = Errorf(invalidRequest, "a batch needs 1 to %d messages", maxBatch)
	}
	if failure != nil {
		_ = c.send(responseOf(nil, nil, failure)) // see receive
		return
	}
	b := &batch{conn: c, pending: len(list)}
	for _, m := range list {
		if !c.receiveMessage(m, b.add) {
			b.add(nil)
		}
	}
}

// add adds a response, or nil for none, and sends the batch's responses if it was the last one. A batch without responses gets no answer.
func (b *batch) add(m *message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m != nil {
		m.Version = "2.0"
		b.responses = append(b.responses, m)
	}
	b.pending--
	if b.pending == 0 && len(b.responses) > 0 {
		_ = b.conn.writeLine(b.responses) // see receive
	}
}
