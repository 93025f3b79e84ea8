package files

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	mu  sync.Mutex
	all map[string]*upload
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
	one    chan struct{} // whoever puts a value in writes
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
	u := &Uploads{dir: dir, all: map[string]*upload{}}
	for _, e := range entries {
		id, isInfo := strings.CutSuffix(e.Name(), uploadInfo)
		if isInfo && ValidID(id) {
			if b, err := os.ReadFile(u.info(id)); err == nil {
				one := newUpload(Upload{})
				if err := json.Unmarshal(b, &one.Upload); err == nil && one.ID == id {
					one.counts = !one.Done()
					u.all[id] = one
				}
			}
		}
	}
	for _, e := range entries { // bytes of which nothing is known
		if one := u.all[strings.TrimSuffix(e.Name(), uploadInfo)]; one == nil || one.Done() && e.Name() == one.ID {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("files: uploads: %w", err)
			}
		}
	}
	return u, nil
}

func newUpload(u Upload) *upload { return &upload{Upload: u, one: make(chan struct{}, 1)} }

func (u *Uploads) bytes(id string) string { return filepath.Join(u.dir, id) }
func (u *Uploads) info(id string) string  { return filepath.Join(u.dir, id+uploadInfo) }

// Create begins an upload; it gets an id that nobody guesses. Its length counts for the owner until it is done or removed. The error may be ErrTooMany.
func (u *Uploads) Create(n Upload) (Upload, error) {
	var id [IDLength / 2]byte
	_, _ = rand.Read(id[:]) // never fails
	n.ID = hex.EncodeToString(id[:])
	one := newUpload(n)
	one.counts = true
	u.mu.Lock()
	unfinished := 0
	for _, o := range u.all {
		if o.Owner == n.Owner && !o.Done() {
			unfinished++
		}
	}
	if unfinished < maxUnfinished {
		u.all[n.ID] = one
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
	one, err := u.find(id)
	if err != nil {
		return Upload{}, err
	}
	u.mu.Lock()
	now := one.Upload
	u.mu.Unlock()
	if now.Offset = now.Length; !now.Done() {
		info, err := os.Stat(u.bytes(id))
		if err != nil {
			return Upload{}, fmt.Errorf("files: upload: %w", err)
		}
		now.Offset = info.Size()
	}
	return now, nil
}

func (u *Uploads) find(id string) (*upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.all[id]; one != nil {
		return one, nil
	}
	return nil, fmt.Errorf("files: upload: %w", fs.ErrNotExist)
}

// hold makes the caller the one that writes. Whoever does now is told to stop, since it most likely reads from a connection
// that is dead: its sender is back. stop is how the caller is told.
func (u *Uploads) hold(ctx context.Context, one *upload, stop func()) (release func(), err error) {
	late := time.NewTimer(giveWay)
	defer late.Stop()
	for again := time.NewTicker(stopAgain); ; {
		u.mu.Lock()
		before := one.stop
		u.mu.Unlock()
		select {
		case one.one <- struct{}{}:
			again.Stop()
			u.mu.Lock()
			one.stop = stop
			u.mu.Unlock()
			return func() {
				u.mu.Lock()
				one.stop = nil
				u.mu.Unlock()
				<-one.one
			}, nil
		default:
		}
		if before != nil {
			before()
		}
		select {
		case <-again.C:
		case <-late.C:
			again.Stop()
			return nil, ErrBusy
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		}
	}
}

// Append adds to an upload what r holds, at the place where it goes on: ErrOffset says that this is another than offset. What
// came before r failed stays. ErrTooLarge says that r holds more than the rest. stop is called, perhaps often, when somebody
// else has come to write; r has to end then.
func (u *Uploads) Append(ctx context.Context, id string, offset int64, r io.Reader, stop func()) (now Upload, err error) {
	one, err := u.find(id)
	if err != nil {
		return now, err
	}
	release, err := u.hold(ctx, one, stop)
	if err != nil {
		return now, err
	}
	defer release()
	if now, err = u.Get(id); err != nil {
		return now, err
	}
	if now.Offset != offset {
		return now, ErrOffset
	}
	if now.Done() {
		return now, nil
	}
	f, err := os.OpenFile(u.bytes(id), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return now, fmt.Errorf("files: upload: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	left := now.Length - offset
	for left > 0 {
		n, cerr := io.Copy(f, io.LimitReader(r, min(left, syncEvery)))
		left -= n
		now.Offset += n
		if serr := f.Sync(); serr != nil {
			return now, fmt.Errorf("files: upload: %w", serr)
		}
		if cerr != nil {
			return now, cerr
		}
		if n == 0 {
			return now, nil // that was all for now
		}
	}
	if n, _ := io.CopyN(io.Discard, r, 1); n > 0 {
		return now, ErrTooLarge
	}
	return now, nil
}

// Finish has place bring a whole upload to where it belongs, once, and keeps what that returns as the result. Until then the
// length counts for the owner; it does not any more when place is called, which counts the file where it goes to.
func (u *Uploads) Finish(ctx context.Context, id string, place func(Upload, *os.File) (json.RawMessage, error)) (Upload, error) {
	one, err := u.find(id)
	if err != nil {
		return Upload{}, err
	}
	release, err := u.hold(ctx, one, nil)
	if err != nil {
		return Upload{}, err
	}
	defer release()
	now, err := u.Get(id)
	if err != nil || now.Done() || now.Offset < now.Length {
		return now, err
	}
	f, err := os.Open(u.bytes(id))
	if err != nil {
		return now, fmt.Errorf("files: upload: %w", err)
	}
	defer f.Close()
	u.count(one, false)
	if now.Result, err = place(now, f); err != nil {
		u.count(one, true)
		now.Result = nil
		return now, err
	}
	u.mu.Lock()
	one.Result = now.Result // also where it can't be written down: it is where it belongs, and is not placed twice
	u.mu.Unlock()
	if err := u.save(&now); err != nil {
		return now, fmt.Errorf("files: upload: %w", err)
	}
	_ = os.Remove(u.bytes(id)) // else the next start does it
	return now, nil
}

func (u *Uploads) count(one *upload, counts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one.counts = counts
}

// Remove takes an upload away, whoever writes to it. One that is not there is no error.
func (u *Uploads) Remove(ctx context.Context, id string) error {
	one, err := u.find(id)
	if err != nil {
		return nil //nolint:nilerr // it is gone already
	}
	release, err := u.hold(ctx, one, nil)
	if err != nil {
		return err
	}
	defer release()
	return u.remove(id)
}

func (u *Uploads) remove(id string) error {
	for _, name := range []string{u.info(id), u.bytes(id)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("files: upload: %w", err)
		}
	}
	u.forget(id)
	return nil
}

func (u *Uploads) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, id)
}

// RemoveAll takes all uploads away of which gone says so, whoever writes to them. The error is ErrBusy where one did not stop.
func (u *Uploads) RemoveAll(ctx context.Context, gone func(Upload) bool) error {
	var errs []error
	for _, one := range u.those(gone) {
		errs = append(errs, u.Remove(ctx, one.ID))
	}
	return errors.Join(errs...)
}

func (u *Uploads) those(wanted func(Upload) bool) (some []*upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.all {
		if wanted(one.Upload) {
			some = append(some, one)
		}
	}
	return some
}

// Sweep takes away what nothing was added to for longer than age, and what has been done for as long, but what somebody writes to.
func (u *Uploads) Sweep(age time.Duration) (n int, err error) {
	before := time.Now().Add(-age)
	for _, one := range u.those(func(one Upload) bool {
		for _, name := range []string{u.info(one.ID), u.bytes(one.ID)} {
			if info, err := os.Stat(name); err == nil && info.ModTime().After(before) {
				return false
			}
		}
		return true
	}) {
		select {
		case one.one <- struct{}{}:
			err = errors.Join(err, u.remove(one.ID))
			n++
			<-one.one
		default:
		}
	}
	return n, err
}

// Stored is how many bytes the unfinished uploads of a user will have, and those of all users of the tenant.
func (u *Uploads) Stored(tenant, subject string) (ofOwner, ofTenant int64) {
	sizes := map[string]int64{}
	u.mu.Lock()
	for _, one := range u.all {
		if one.counts {
			sizes[one.Owner] += one.Length
		}
	}
	u.mu.Unlock()
	return sum(sizes, tenant, subject)
}
