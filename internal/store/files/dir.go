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
	"strings"
	"sync"
	"time"
)

// IDLength is the length of a file's id: 128 bits of the content's SHA-256, in hexadecimal.
const IDLength = 32

// temporary is the folder in which files are written until they are complete.
const temporary = "new"

// store is a folder of files, in one folder for each conversation. A file's name is its id, so a path contains no text of a user. All methods
// are safe for concurrent use, but only one process may use a folder.
type store struct {
	root string
	// mu is held for writing by a sweep, so that no file appears while it decides what to delete. Create holds it for reading,
	// only for the final rename.
	mu sync.RWMutex
}

// StoredFile describes a stored file.
type StoredFile struct {
	ID   string
	Size int64
	Head []byte // its first bytes, at most [Sniffed], for [MIME]
}

// Open creates the folder if it doesn't exist, and deletes incomplete files that a previous process left.
func Open(root string) (*store, error) {
	if err := os.RemoveAll(filepath.Join(root, temporary)); err != nil {
		return nil, fmt.Errorf("files: delete incomplete files: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, temporary), 0o700); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return &store{root: root}, nil
}

// Create stores what r contains, at most max bytes, in a conversation. The file is durable when Create returns. The same
// content always gets the same id, so storing it again replaces the file by itself. The error wraps ErrTooLarge or ErrEmpty, or
// is that of r or of the disk.
func (d *store) Create(conversation string, r io.Reader, max int64) (s StoredFile, err error) {
	// The temporary file is in the same file system, so that the rename in place is atomic.
	f, err := os.CreateTemp(filepath.Join(d.root, temporary), "*")
	if err != nil {
		return s, fmt.Errorf("files: create: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && !errors.Is(cerr, fs.ErrClosed) {
			err = cerr
		}
		if err != nil {
			_ = os.Remove(f.Name()) // otherwise Open deletes it
		}
	}()
	sum := sha256.New()
	head := &head{}
	if s.Size, err = io.Copy(io.MultiWriter(f, sum, head), io.LimitReader(r, max+1)); err != nil {
		return s, fmt.Errorf("files: create: %w", err)
	}
	switch {
	// One byte more than allowed is read, to tell a file of exactly max bytes from a larger one.
	case s.Size > max:
		return s, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)
	case s.Size == 0:
		return s, ErrEmpty
	}
	s.ID, s.Head = hex.EncodeToString(sum.Sum(nil))[:IDLength], head.b
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return s, fmt.Errorf("files: create: %w", err)
	}
	if err := d.place(f.Name(), d.folder(conversation), s.ID); err != nil {
		return s, fmt.Errorf("files: create: %w", err)
	}
	return s, nil
}

// place moves a complete file to its final path, durably.
func (d *store) place(from, folder, id string) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, filepath.Join(folder, id)); err != nil {
		return err
	}
	// Sync the entry of the file, of its folder, and of the folder's parent.
	for _, dir := range []string{folder, filepath.Dir(folder), d.root} {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// Open opens a file for reading. If it doesn't exist, the error wraps fs.ErrNotExist. The caller closes it. Sweep and Remove
// don't affect an open file on Unix.
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

// Remove deletes a file. A missing file is not an error.
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

// RemoveAll deletes all files of a conversation. It is called when the conversation is deleted.
func (d *store) RemoveAll(conversation string) error {
	if err := os.RemoveAll(d.folder(conversation)); err != nil {
		return fmt.Errorf("files: remove: %w", err)
	}
	return nil
}

// Sweep deletes files for which isUsed returns false, if they are older than age. A younger one may be about to be referenced:
// a file is stored before the message that refers to it. onRemove is called for each deleted file. Folders have the names that
// [Folder] returns.
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

// Folder returns the name of a conversation's folder. It is a digest, so that ids of conversations never become part of a path.
func Folder(conversation string) string {
	sum := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(sum[:16])
}

// folder returns the path of a conversation's folder. A level of 256 folders in between keeps directories small.
func (d *store) folder(conversation string) string {
	name := Folder(conversation)
	return filepath.Join(d.root, name[:2], name)
}

// ValidID reports whether id has the form of a file's id, and so is safe as an element of a path.
func ValidID(id string) bool {
	return len(id) == IDLength && strings.Trim(id, "0123456789abcdef") == ""
}

// head collects the first bytes that are written to it.
type head struct{ b []byte }

func (h *head) Write(b []byte) (int, error) {
	h.b = append(h.b, b[:min(len(b), Sniffed-len(h.b))]...)
	return len(b), nil
}
