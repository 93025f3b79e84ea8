package gateway

import (
	"slices"
	"sync"

	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// positions has the principals that follow their read positions. Its mu is locked before that of a follower.
type positions struct {
	mu        sync.Mutex
	followers map[quota.Account]map[*Positions]struct{}
}

// Positions notifies one principal of conversations in which its read position, or what is unread, has changed. It collects
// only the ids, so a slow follower gets each id once.
type Positions struct {
	of      *positions
	account quota.Account

	mu  sync.Mutex
	ids map[string]struct{}
	// changed has room for one value, which stands for any number of ids. mu protects ids.
	changed chan struct{}
}

// Close stops the notifications. A value may still be in the channel after it.
func (f *Positions) Close() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if delete(f.of.followers[f.account], f); len(f.of.followers[f.account]) == 0 {
		delete(f.of.followers, f.account)
	}
}

// Changed returns a channel that has a value when Take returns ids.
func (f *Positions) Changed() <-chan struct{} { return f.changed }

// Take returns the ids of the conversations that have changed since the last call, sorted.
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

// tell notifies the followers of one principal of a change in a conversation.
func (l *positions) tell(account quota.Account, conversation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellLocked(account, conversation)
}

// tellLocked is tell with l.mu locked.
func (l *positions) tellLocked(account quota.Account, conversation string) {
	for f := range l.followers[account] {
		f.add(conversation)
	}
}

// add adds a conversation to those that Take returns, and wakes the follower.
func (f *Positions) add(conversation string) {
	f.mu.Lock()
	f.ids[conversation] = struct{}{}
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// notifyUnread notifies the owner and the guests of a conversation that it may have become unread. Whether it is
// unread for a follower is decided when that follower reads the position. With a grant to the whole tenant, all
// followers of the tenant are notified, also those who have never opened the conversation.
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
			if account.Tenant == s.Tenant && account != (quota.Account{}) { // an admin has no tenant
				l.tellLocked(account, s.ID)
			}
		}
	}
}
