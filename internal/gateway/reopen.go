package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/store/journal"
)

// reopener opens conversations again that were given up, so that their turns are recovered, and completes deletes that have
// failed. It retries every second until it succeeds.
type reopener struct {
	life    context.Context                                      // of the gateway; run ends with it
	healthy func() error                                         // of the journal
	open    func(ctx context.Context, conversation string) error // opens a conversation's writer, which recovers its turns
	erase   func(ctx context.Context, conversation string) error // finishes a delete
	log     *slog.Logger

	mu            sync.Mutex
	conversations map[string]bool
	deletes       map[string]bool // conversations whose delete must be completed
}

// addDelete adds a conversation whose delete is committed but not completed.
func (p *reopener) addDelete(conversation string) {
	p.mu.Lock()
	p.deletes[conversation] = true
	p.mu.Unlock()
}

// add adds a conversation that was given up.
func (p *reopener) add(conversation string) {
	p.mu.Lock()
	p.conversations[conversation] = true
	p.mu.Unlock()
}

// idle reports whether there is nothing to do.
func (p *reopener) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conversations)+len(p.deletes) == 0
}

// retryEvery is the pause between attempts. A failing disk needs some time to recover.
const retryEvery = time.Second

// run works until the gateway has drained. While the journal reports that commits fail, it only waits.
func (p *reopener) run() {
	for retry.Sleep(p.life, retryEvery) == nil {
		if p.idle() || p.healthy() != nil {
			continue
		}
		p.mu.Lock()
		// Taken out before the attempts: what fails is added again, and what is added meanwhile is tried in the next second.
		ids, deletes := slices.Collect(maps.Keys(p.conversations)), slices.Collect(maps.Keys(p.deletes))
		clear(p.conversations)
		clear(p.deletes)
		p.mu.Unlock()
		// Deletes first: a conversation that is being deleted can't be opened.
		for _, id := range deletes {
			if err := p.erase(p.life, id); err != nil && !errors.Is(err, journal.ErrNotFound) {
				p.log.Warn("delete not completed; retrying", "conversation", id, "error", err)
				p.addDelete(id)
			}
		}
		for _, id := range ids {
			switch err := p.open(p.life, id); {
			case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrClosed), errors.Is(err, ErrDamaged):
			default:
				p.add(id)
			}
		}
	}
}
