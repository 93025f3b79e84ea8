package whatsapp

import (
	"context"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// pairGap is the time between two messages to one person. More pass for a moment, but are taken from later ones.
	pairGap = 6 * time.Second
	// maxPaced is how many people are remembered before those to whom a message is allowed are forgotten.
	maxPaced = 1000
)

// pacer keeps the time between two messages to one person. Read receipts don't count.
type pacer struct {
	mu   sync.Mutex
	next map[string]time.Time // no message to a person before
}

// wait waits until a message to a person is allowed. One caller waits for each person, because live makes one request at a time.
func (p *pacer) wait(ctx context.Context, person string) error {
	p.mu.Lock()
	at := p.next[person]
	p.mu.Unlock()
	if d := time.Until(at); d > 0 {
		return retry.Sleep(ctx, d)
	}
	return nil
}

// record records that a message to a person was sent, or possibly sent.
func (p *pacer) record(person string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sentAt := time.Now()
	if len(p.next) >= maxPaced {
		for id, at := range p.next {
			if sentAt.After(at) {
				delete(p.next, id)
			}
		}
	}
	p.next[person] = sentAt.Add(pairGap)
}
