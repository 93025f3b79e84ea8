package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// reopener opens given up conversations again, until their turns have their ends, and finishes deletes that failed.
type reopener struct {
	life    context.Context                                      // of the gateway; run ends with it
	healthy func() error                                         // of the journal
	open    func(ctx context.Context, conversation string) error // opens a conversation's writer, which recovers its turns
	erase   func(ctx context.Context, conversation string) error // finishes a delete
	log     *slog.Logger

	mu            sync.Mutex
	conversations map[string]bool
	deletes       map[string]bool // to be erased
}

func (p *reopener) addDelete(conversation string) {
	p.mu.Lock()
	p.deletes[conversation] = true
	p.mu.Unlock()
}

func (p *reopener) add(conversation string) {
	p.mu.Lock()
	p.conversations[conversation] = true
	p.mu.Unlock()
}

func (p *reopener) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conversations)+len(p.deletes) == 0
}

// retryEvery is how often given up conversations are tried; a failing disk is not worth asking more often.
const retryEvery = time.Second

func (p *reopener) run() {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-p.life.Done():
			return
		}
		if p.idle() || p.healthy() != nil {
			continue
		}
		p.mu.Lock()
		ids, deletes := slices.Collect(maps.Keys(p.conversations)), slices.Collect(maps.Keys(p.deletes))
		clear(p.conversations)
		clear(p.deletes)
		p.mu.Unlock()
		for _, id := range deletes {
			if err := p.erase(p.life, id); err != nil && !errors.Is(err, journal.ErrNotFound) {
				p.log.Warn("delete not finished; it is tried again", "conversation", id, "error", err)
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
