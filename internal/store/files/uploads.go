package files

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Uploads are files on their way: they come in pieces, with pauses, and over restarts of the gateway. The bytes of one lie in a
// file of its own, whose size is where it goes on, and what is known of it in another beside. The methods may be called from
// several goroutines, of one process.
type Uploads struct {
	dir string

	mu   sync.Mutex
	byID map[string]*upload
}

// Upload is what is known of a file on its way.
type Upload struct {
	ID           string          `json:"id"`
	Owner        string          `json:"owner"` // as [Owner] has it
	Conversation string          `json:"conversation,omitempty"`
	Name         string          `json:"name,omitempty"`
	MIME         string          `json:"mime,omitempty"`
	Alt          string          `json:"alt,omitempty"`
	Length       int64           `json:"length"`
	Result       json.RawMessage `json:"result,omitempty"` // what became of it, once it is whole and where it belongs
	Offset       int64           `json:"-"`                // how many bytes are there
}

// Done reports whether the file is where it belongs.
func (u *Upload) Done() bool { return u.Result != nil }

// upload is one, and the lock of whoever writes to it.
type upload struct {
	Upload
	counts bool          // its length counts for its owner
	slot   chan struct{} // whoever puts a value in writes
	stop   func()        // makes who writes stop; guarded by the mutex of all
}

const (
	// maxUnfinished bounds the uploads that an owner has begun and not ended: more than a page sends at once.
	maxUnfinished = 64
	// syncEvery is how many bytes of an upload may be lost to a power cut.
	syncEvery = 8 << 20
	// giveWay is how long who writes to an upload has to stop for somebody else, and stopAgain how often it is told to.
	giveWay, stopAgain = 10 * time.Second, 20 * time.Millisecond

	uploadInfo = ".json"
)

// OpenUploads makes the folder where there is none, and takes up what lies in it.
func OpenUploads(dir string) (*Uploads, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("files: uploads: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("files: uploads: %w", err)
	}
	u := &Uploads{dir: dir, byID: map[string]*upload{}}
	for _, e := range entries {
		id, isInfo := strings.CutSuffix(e.Name(), uploadInfo)
		if isInfo && ValidID(id) {
			if b, err := os.ReadFile(u.info(id)); err == nil {
				entry := newUpload(Upload{})
				if err := json.Unmarshal(b, &entry.Upload); err == nil && entry.ID == id {
					entry.counts = !entry.Done()
					u.byID[id] = entry
				}
			}
		}
	}
	for _, e := range entries { // bytes of which nothing is known
		if entry := u.byID[strings.TrimSuffix(e.Name(), uploadInfo)]; entry == nil || entry.Done() && e.Name() == entry.ID {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("files: uploads: %w", err)
			}
		}
	}
	return u, nil
}

func newUpload(u Upload) *upload { return &upload{Upload: u, slot: make(chan struct{}, 1)} }

func (u *Uploads) bytes(id string) string { return filepath.Join(u.dir, id) }
func (u *Uploads) info(id string) string  { return filepath.Join(u.dir, id+uploadInfo) }

// Create begins an upload; it gets an id that nobody guesses. Its length counts for the owner until it is done or removed. The error may be ErrTooMany.
func (u *Uploads) Create(n Upload) (Upload, error) {
	var id [IDLength / 2]byte
	_, _ = rand.Read(id[:]) // never fails
	n.ID = hex.EncodeToString(id[:])
	entry := newUpload(n)
	entry.counts = true
	u.mu.Lock()
	unfinished := 0
	for _, o := range u.byID {
		if o.Owner == n.Owner && !o.Done() {
			unfinished++
		}
	}
	if unfinished < maxUnfinished {
		u.byID[n.ID] = entry
	}
	u.mu.Unlock()
	if unfinished >= maxUnfinished {
		return n, fmt.Errorf("%w: %d", ErrTooMany, unfinished)
	}
	err := os.WriteFile(u.bytes(n.ID), nil, 0o600)
	if err == nil {
		err = u.save(&n)
	}
	if err != nil {
		u.forget(n.ID)
		return n, fmt.Errorf("files: upload: %w", err)
	}
	return n, nil
}

// save writes down what is known of an upload, whole or not at all.
func (u *Uploads) save(n *Upload) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(u.info(n.ID)+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), u.info(n.ID)); err != nil {
		return err
	}
	return syncDir(u.dir)
}

// Get returns an upload as it stands. Where there is none the error wraps fs.ErrNotExist.
func (u *Uploads) Get(id string) (Upload, error) {
	entry, err := u.find(id)
	if err != nil {
		return Upload{}, err
	}
	u.mu.Lock()
	snapshot := entry.Upload
	u.mu.Unlock()
	if snapshot.Offset = snapshot.Length; !snapshot.Done() {
		info, err := os.Stat(u.bytes(id))
		if err != nil {
			return Upload{}, fmt.Errorf("files: upload: %w", err)
		}
		snapshot.Offset = info.Size()
	}
	return snapshot, nil
}

func (u *Uploads) find(id string) (*upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if entry := u.byID[id]; entry != nil {
		return entry, nil
	}
	return nil, fmt.Errorf("files: upload: %w", fs.ErrNotExist)
}

// Stored is how many bytes the unfinished uploads of a user will have, and those of all users of the tenant.
func (u *Uploads) StoredBytes(tenant, subject string) (ofOwner, ofTenant int64) {
	sizes := map[string]int64{}
	u.mu.Lock()
	for _, entry := range u.byID {
		if entry.counts {
			sizes[entry.Owner] += entry.Length
		}
	}
	u.mu.Unlock()
	return sum(sizes, tenant, subject)
}
