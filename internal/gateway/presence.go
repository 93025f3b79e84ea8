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

// HasOtherReaders reports whether somebody other than a principal reads a conversation now.
func (g *Gateway) HasOtherReaders(p Principal, conversation string) bool {
	g.presence.mu.Lock()
	defer g.presence.mu.Unlock()
	for account := range g.presence.readers[conversation] {
		if account != p.Account() {
			return true
		}
	}
	return false
}
