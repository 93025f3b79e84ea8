package gateway

import (
	"slices"
	"sync"

	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// positions knows who wants to be told that something was read, or became unread.
type positions struct {
	mu        sync.Mutex
	followers map[quota.Account]map[*Positions]struct{}
}

// Positions tells of conversations in which a principal's position, or what is unread behind it, has changed. What is told is
// which; a follower that is slow is told of each once.
type Positions struct {
	of  *positions
	who quota.Account

	mu      sync.Mutex
	ids     map[string]struct{}
	changed chan struct{}
}

// Close ends it.
func (f *Positions) Close() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if delete(f.of.followers[f.who], f); len(f.of.followers[f.who]) == 0 {
		delete(f.of.followers, f.who)
	}
}

// Changed returns a channel that has a value when there is something to take.
func (f *Positions) Changed() <-chan struct{} { return f.changed }

// Take returns the ids of the conversations that have changed since the last call, in their order.
func (f *Positions) Take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := make([]string, 0, len(f.ids))
	for id := range f.ids {
		ids = append(ids, id)
	}
	clear(f.ids)
	slices.Sort(ids)
	return ids
}

// tell tells the followers of one principal of a conversation.
func (l *positions) tell(who quota.Account, conversation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellLocked(who, conversation)
}

func (l *positions) tellLocked(who quota.Account, conversation string) {
	for f := range l.followers[who] {
		f.put(conversation)
	}
}

func (f *Positions) put(conversation string) {
	f.mu.Lock()
	f.ids[conversation] = struct{}{}
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// spoken tells those whom a conversation concerns that it may be unread now.
func (l *positions) spoken(s *journal.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellLocked(quota.Account{Tenant: s.Tenant, Subject: s.Owner}, s.ID)
	for _, grant := range s.Grants {
		if grant.Subject != Everybody {
			l.tellLocked(quota.Account{Tenant: s.Tenant, Subject: grant.Subject}, s.ID)
			continue
		}
		for who := range l.followers {
			if who.Tenant == s.Tenant && who != (quota.Account{}) { // the admin is of no tenant
				l.tellLocked(who, s.ID)
			}
		}
	}
}
