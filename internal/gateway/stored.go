package gateway

import (
	"sync"

	"github.com/leat-dev/leat/internal/service/quota"
)

// stored are the bytes of all files, which count for their owners as their logs do.
type stored struct {
	mu      sync.Mutex
	folders map[string]*fileSizes
	owners  map[quota.Who]int64
	tenants map[string]int64
}

// fileSizes are the files of a conversation.
type fileSizes struct {
	who   quota.Who
	sizes map[string]int64 // by id
}

func newStored() *stored {
	return &stored{folders: map[string]*fileSizes{}, owners: map[quota.Who]int64{}, tenants: map[string]int64{}}
}

// add counts a file, once.
func (s *stored) add(folder string, who quota.Who, id string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.folders[folder]
	if h == nil {
		h = &fileSizes{who: who, sizes: map[string]int64{}}
		s.folders[folder] = h
	}
	if _, ok := h.sizes[id]; ok {
		return
	}
	h.sizes[id] = size
	s.change(h.who, size)
}

// remove takes files off: those named, or all of the folder.
func (s *stored) remove(folder string, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.folders[folder]
	if h == nil {
		return
	}
	if ids == nil {
		for id := range h.sizes {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		s.change(h.who, -h.sizes[id])
		delete(h.sizes, id)
	}
	if len(h.sizes) == 0 {
		delete(s.folders, folder)
	}
}

// change adds bytes to an owner and its tenant. What is 0 is not there. Callers hold the lock.
func (s *stored) change(who quota.Who, by int64) {
	if s.owners[who] += by; s.owners[who] == 0 {
		delete(s.owners, who)
	}
	if s.tenants[who.Tenant] += by; s.tenants[who.Tenant] == 0 {
		delete(s.tenants, who.Tenant)
	}
}

// of returns what an owner's files take, and all of its tenant.
func (s *stored) of(tenant, owner string) (ofOwner, ofTenant int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[quota.Who{Tenant: tenant, Subject: owner}], s.tenants[tenant]
}
