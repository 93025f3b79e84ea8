package files

import (
	"context"
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

// Uploads are files that arrive in pieces, with pauses and across restarts of the gateway. The bytes of an upload are in one
// file, whose size is the upload's offset, and its description in a second one. All methods are safe for concurrent use, but
// only one process may use the folder.
type Uploads struct {
	dir string

	mu   sync.Mutex
	byID map[string]*upload
}

// Upload describes a file that is being uploaded. Its JSON is the stored description.
type Upload struct {
	ID           string          `json:"id"`
	Owner        string          `json:"owner"` // an id returned by [Owner]
	Conversation string          `json:"conversation,omitempty"`
	Name         string          `json:"name,omitempty"`
	MIME         string          `json:"mime,omitempty"`
	Alt          string          `json:"alt,omitempty"`
	Length       int64           `json:"length"`
	Result       json.RawMessage `json:"result,omitempty"` // result of Finish; set when the file is in its final place
	Offset       int64           `json:"-"`                // number of bytes received
}

// Done reports whether the file is complete and in its final place.
func (u *Upload) Done() bool { return u.Result != nil }

// upload is the state of one upload. Only the holder of slot may write its files. The embedded Upload is protected by
// Uploads.mu.
type upload struct {
	Upload
	counts bool          // its length counts toward the owner's stored bytes
	slot   chan struct{} // capacity 1: the sender of a value is the writer until it receives it back
	stop   func()        // asks the current writer to stop; protected by Uploads.mu
}

const (
	// maxUnfinished limits the unfinished uploads of an owner. It exceeds what a page sends concurrently.
	maxUnfinished = 64
	// syncEvery is the number of bytes of an upload that a power failure may lose.
	syncEvery = 8 << 20
	// giveWay is how long a writer may take to stop for another request, and stopAgain the interval at which it is asked to.
	giveWay, stopAgain = 10 * time.Second, 20 * time.Millisecond

	uploadInfo = ".json"
)

// OpenUploads creates the folder if it doesn't exist, and loads the uploads in it. It deletes data without a description, which
// remains if the gateway was killed in Create, data of finished uploads, and incomplete descriptions. A description that can't be
// read is deleted with its data.
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
	for _, e := range entries { // files that belong to no upload, or to a finished one
		if entry := u.byID[strings.TrimSuffix(e.Name(), uploadInfo)]; entry == nil || entry.Done() && e.Name() == entry.ID {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("files: uploads: %w", err)
			}
		}
	}
	return u, nil
}

// newUpload returns the state of an upload without a writer. Its length doesn't count toward the owner until counts is set.
func newUpload(u Upload) *upload { return &upload{Upload: u, slot: make(chan struct{}, 1)} }

// bytes returns the path of an upload's data, info that of its description.
func (u *Uploads) bytes(id string) string { return filepath.Join(u.dir, id) }
func (u *Uploads) info(id string) string  { return filepath.Join(u.dir, id+uploadInfo) }

// Create starts an upload and returns it with a random id, which can't be guessed. Its length counts toward the owner's stored
// bytes until it is finished or removed. The error may wrap ErrTooMany.
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

// save stores the description of an upload atomically and durably. The temporary file has another suffix, so an incomplete one
// is never taken for a description.
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

// Get returns an upload and its current offset. If it doesn't exist, the error wraps fs.ErrNotExist. The offset is the size of
// the data file, which includes bytes that aren't synced yet.
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

// find returns the state of an upload, or an error that wraps fs.ErrNotExist. The state stays usable after the upload is removed, so a caller
// that waited for the slot must look the upload up again.
func (u *Uploads) find(id string) (*upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if entry := u.byID[id]; entry != nil {
		return entry, nil
	}
	return nil, fmt.Errorf("files: upload: %w", fs.ErrNotExist)
}

// StoredBytes returns the lengths of the unfinished uploads of a user and of all users of the tenant. The announced length
// counts, not the bytes received, so that a user can't exceed a quota with many small beginnings.
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

// Remove deletes an upload and stops its writer. A missing upload is not an error. The error is ErrBusy if the writer
// doesn't stop.
func (u *Uploads) Remove(ctx context.Context, id string) error {
	entry, err := u.find(id)
	if err != nil {
		return nil //nolint:nilerr // it doesn't exist
	}
	release, err := u.acquire(ctx, entry, nil)
	if err != nil {
		return err
	}
	defer release()
	return u.remove(id)
}

// remove deletes the files of an upload. The caller holds the upload's slot. The description goes first, because data without
// one is deleted by the next OpenUploads.
func (u *Uploads) remove(id string) error {
	for _, name := range []string{u.info(id), u.bytes(id)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("files: upload: %w", err)
		}
	}
	u.forget(id)
	return nil
}

// forget removes an upload from memory.
func (u *Uploads) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byID, id)
}

// RemoveAll deletes all uploads that match, and stops their writers. The error is ErrBusy if one of them doesn't stop.
func (u *Uploads) RemoveAll(ctx context.Context, match func(Upload) bool) error {
	var errs []error
	for _, entry := range u.selectUploads(match) {
		errs = append(errs, u.Remove(ctx, entry.ID))
	}
	return errors.Join(errs...)
}

// selectUploads returns the uploads that match. match is called with mu held, so it must not call the Uploads.
func (u *Uploads) selectUploads(match func(Upload) bool) (matching []*upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, entry := range u.byID {
		if match(entry.Upload) {
			matching = append(matching, entry)
		}
	}
	return matching
}

// Sweep deletes the uploads, finished or not, that weren't written to for longer than age. It skips those with an active
// writer. It returns the number of deleted uploads. It is called at intervals by the gateway.
func (u *Uploads) Sweep(age time.Duration) (n int, err error) {
	before := time.Now().Add(-age)
	for _, entry := range u.selectUploads(func(entry Upload) bool {
		for _, name := range []string{u.info(entry.ID), u.bytes(entry.ID)} {
			if info, err := os.Stat(name); err == nil && info.ModTime().After(before) {
				return false
			}
		}
		return true
	}) {
		select {
		case entry.slot <- struct{}{}:
			err = errors.Join(err, u.remove(entry.ID))
			n++
			<-entry.slot
		default:
		}
	}
	return n, err
}
