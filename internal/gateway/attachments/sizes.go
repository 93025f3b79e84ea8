package attachments

import (
	"maps"
	"slices"
	"sync"

	"github.com/leat-dev/leat/internal/service/quota"
)

// sizes counts the bytes of all stored files for the owners of their conversations. The counts are in memory only: the sweep at the start
// adds every file that has a record. An entry that drops to 0 is removed, so the maps don't grow with accounts that are gone.
type sizes struct {
	mu      sync.Mutex
	folders map[string]*folder      // by [files.Folder] of the conversation
	owners  map[quota.Account]int64 // bytes
	tenants map[string]int64        // bytes of all owners of a tenant
}

// folder lists the files of one conversation. It keeps the owner, so that remove needs only the name of the folder.
type folder struct {
	owner quota.Account
	sizes map[string]int64 // by id
}

// newSizes returns an empty table.
func newSizes() *sizes {
	return &sizes{folders: map[string]*folder{}, owners: map[quota.Account]int64{}, tenants: map[string]int64{}}
}

// add counts a file, unless it is counted already.
func (s *sizes) add(name string, owner quota.Account, id string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[name]
	if f == nil {
		f = &folder{owner: owner, sizes: map[string]int64{}}
		s.folders[name] = f
	}
	if _, ok := f.sizes[id]; ok {
		return
	}
	f.sizes[id] = size
	s.change(f.owner, size)
}

// remove stops counting files of a folder, or the whole folder if no ids are given. Files that aren't counted are ignored.
func (s *sizes) remove(name string, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[name]
	if f == nil {
		return
	}
	if ids == nil {
		ids = slices.Collect(maps.Keys(f.sizes))
	}
	for _, id := range ids {
		s.change(f.owner, -f.sizes[id])
		delete(f.sizes, id)
	}
	if len(f.sizes) == 0 {
		delete(s.folders, name)
	}
}

// change adds bytes to an owner and to its tenant. s.mu is held.
func (s *sizes) change(owner quota.Account, bytes int64) {
	if s.owners[owner] += bytes; s.owners[owner] == 0 {
		delete(s.owners, owner)
	}
	if s.tenants[owner.Tenant] += bytes; s.tenants[owner.Tenant] == 0 {
		delete(s.tenants, owner.Tenant)
	}
}

// of returns the bytes of an owner's files, and of all files of the tenant. The quota calls it with its own lock held, so it only reads maps.
func (s *sizes) of(tenant, owner string) (ofOwner, ofTenant int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[quota.Account{Tenant: tenant, Subject: owner}], s.tenants[tenant]
}
