package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// IDLength is how many characters an id has: 128 bits of the content's SHA-256, in hexadecimal.
const IDLength = 32

// temporary is the folder in which files are written.
const temporary = "new"

// Dir is a folder of files. Its methods may be called from several goroutines, of one process.
type store struct {
	root string
	// A sweep holds it, so that it takes nothing away that comes just then; who brings a file, only for as long as that takes its place.
	mu sync.RWMutex
}

// Stored is a file as it lies in the store.
type StoredFile struct {
	ID   string
	Size int64
	Head []byte // its first bytes, up to [Sniffed]
}

// Open makes the folder where there is none, and clears away what was half written.
func Open(root string) (*store, error) {
	if err := os.RemoveAll(filepath.Join(root, temporary)); err != nil {
		return nil, fmt.Errorf("files: clear up: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, temporary), 0o700); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return &store{root: root}, nil
}

// Put stores what r holds, at most max bytes, in a conversation. It is durable when Put returns. Errors wrap ErrTooLarge,
// ErrEmpty, or what reading or writing gave.
func (d *store) Create(conversation string, r io.Reader, max int64) (s StoredFile, err error) {
	f, err := os.CreateTemp(filepath.Join(d.root, temporary), "*")
	if err != nil {
		return s, fmt.Errorf("files: put: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && !errors.Is(cerr, fs.ErrClosed) {
			err = cerr
		}
		if err != nil {
			_ = os.Remove(f.Name()) // Open clears up what is left
		}
	}()
	sum := sha256.New()
	head := &head{}
	if s.Size, err = io.Copy(io.MultiWriter(f, sum, head), io.LimitReader(r, max+1)); err != nil {
		return s, fmt.Errorf("files: put: %w", err)
	}
	switch {
	case s.Size > max:
		return s, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)
	case s.Size == 0:
		return s, ErrEmpty
	}
	s.ID, s.Head = hex.EncodeToString(sum.Sum(nil))[:IDLength], head.b
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return s, fmt.Errorf("files: put: %w", err)
	}
	if err := d.place(f.Name(), d.folder(conversation), s.ID); err != nil {
		return s, fmt.Errorf("files: put: %w", err)
	}
	return s, nil
}

// place moves a written file to where it belongs, durably.
func (d *store) place(from, folder, id string) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, filepath.Join(folder, id)); err != nil {
		return err
	}
	// The file's entry, the folder's, and that of the folder above it.
	for _, dir := range []string{folder, filepath.Dir(folder), d.root} {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// Open returns a file to read. Where there is none the error wraps fs.ErrNotExist.
func (d *store) Open(conversation, id string) (*os.File, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("files: open: %w", fs.ErrNotExist)
	}
	f, err := os.Open(filepath.Join(d.folder(conversation), id))
	if err != nil {
		return nil, fmt.Errorf("files: open: %w", err)
	}
	return f, nil
}

// Remove takes a file away. One that is not there is no error.
func (d *store) Remove(conversation, id string) error {
	if !ValidID(id) {
		return nil
	}
	err := os.Remove(filepath.Join(d.folder(conversation), id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: remove: %w", err)
	}
	return nil
}

// RemoveAll takes all files of a conversation away.
func (d *store) RemoveAll(conversation string) error {
	if err := os.RemoveAll(d.folder(conversation)); err != nil {
		return fmt.Errorf("files: remove: %w", err)
	}
	return nil
}

// Sweep takes away what nobody knows: files for which known says no and that are older than age, since one that is younger
// may just be about to be known. removed is called for each. Folders are named as [Folder] says.
func (d *store) Sweep(age time.Duration, isUsed func(folder, id string) bool, onRemove func(folder, id string)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := time.Now().Add(-age)
	err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path == filepath.Join(d.root, temporary) {
				return fs.SkipDir
			}
			return nil
		}
		folder := filepath.Base(filepath.Dir(path))
		if isUsed(folder, e.Name()) {
			return nil
		}
		fi, err := e.Info()
		if err != nil || fi.ModTime().After(before) {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		onRemove(folder, e.Name())
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: sweep: %w", err)
	}
	return nil
}

// Folder is the name of a conversation's folder.
func Folder(conversation string) string {
	sum := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(sum[:16])
}

// folder is where a conversation's files lie; a level in between keeps folders short.
func (d *store) folder(conversation string) string {
	name := Folder(conversation)
	return filepath.Join(d.root, name[:2], name)
}

// ValidID reports whether something can be an id of a file.
func ValidID(id string) bool {
	if len(id) != IDLength {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// head keeps the first bytes of what is written.
type head struct{ b []byte }

func (h *head) Write(b []byte) (int, error) {
	h.b = append(h.b, b[:min(len(b), Sniffed-len(h.b))]...)
	return len(b), nil
}
