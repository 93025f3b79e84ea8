package gateway

import (
	"sync"

	"github.com/leat-dev/leat/internal/service/quota"
)

// presence counts who reads each conversation now.
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

// leave undoes enter.
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

// hasOthers reports whether another user than that of an account reads a conversation.
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
