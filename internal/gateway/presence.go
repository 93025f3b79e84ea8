package gateway

import (
	"sync"

	"github.com/leat-dev/leat/internal/service/quota"
)

// presence counts the readers of each conversation by account. It is in memory only, since it concerns open
// connections. The zero value is empty.
type presence struct {
	mu      sync.Mutex
	readers map[string]map[quota.Account]int
}

// enter counts a reader.
func (s *presence) enter(conversation string, account quota.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers == nil {
		s.readers = map[string]map[quota.Account]int{}
	}
	if s.readers[conversation] == nil {
		s.readers[conversation] = map[quota.Account]int{}
	}
	s.readers[conversation][account]++
}

// leave undoes enter. Each enter must be undone exactly once, or a user stays present forever.
func (s *presence) leave(conversation string, account quota.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	accounts := s.readers[conversation]
	if accounts[account]--; accounts[account] == 0 {
		delete(accounts, account)
	}
	if len(accounts) == 0 {
		delete(s.readers, conversation)
	}
}

// hasOthers reports whether another user than that of an account reads a conversation. A spoken answer, for example,
// is only stopped by its listener if no one else follows it.
func (s *presence) hasOthers(conversation string, account quota.Account) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for reader := range s.readers[conversation] {
		if reader != account {
			return true
		}
	}
	return false
}
