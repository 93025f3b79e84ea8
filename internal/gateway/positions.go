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
	of      *positions
	account quota.Account

	mu      sync.Mutex
	ids     map[string]struct{}
	changed chan struct{}
}

// Close ends it.
func (f *Positions) Close() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if delete(f.of.followers[f.account], f); len(f.of.followers[f.account]) == 0 {
		delete(f.of.followers, f.account)
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
func (l *positions) tell(account quota.Account, conversation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellLocked(account, conversation)
}

func (l *positions) tellLocked(account quota.Account, conversation string) {
	for f := range l.followers[account] {
		f.add(conversation)
	}
}

func (f *Positions) add(conversation string) {
	f.mu.Lock()
	f.ids[conversation] = struct{}{}
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// spoken tells those whom a conversation concerns that it may be unread now.
func (l *positions) notifyUnread(s *journal.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellLocked(quota.Account{Tenant: s.Tenant, Subject: s.Owner}, s.ID)
	for _, grant := range s.Grants {
		if grant.Subject != WholeTenant {
			l.tellLocked(quota.Account{Tenant: s.Tenant, Subject: grant.Subject}, s.ID)
			continue
		}
		for account := range l.followers {
			if account.Tenant == s.Tenant && account != (quota.Account{}) { // the admin is of no tenant
				l.tellLocked(account, s.ID)
			}
		}
	}
}
