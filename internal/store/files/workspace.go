package files

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"
)

// uploaded is the folder of a workspace in which lies what people bring; all else in it is the agents'.
const uploaded = "uploads"

// Operator is the owner of what is brought without a user.
const Operator = "operator"

// Workspace is a folder that the gateway shares with its agents: each names a file to the other by its path. What people bring
// lies in uploads/OWNER, a folder for each of them. Its methods may be called from several goroutines.
type Workspace struct {
	dir  string // as it is configured, absolute
	real string // without symbolic links
	root *os.Root

	mu    sync.Mutex
	sizes map[string]int64 // bytes by owner
}

// Owner is the folder of a user, of whom it tells nothing to those who don't know the name.
func Owner(tenant, subject string) string {
	if subject == "" {
		return Operator
	}
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return tenantPrefix(tenant) + hex.EncodeToString(sum[:12])
}

// tenantPrefix is what the folders of all users of a tenant begin with.
func tenantPrefix(tenant string) string {
	sum := sha256.Sum256([]byte("tenant\x00" + tenant))
	return hex.EncodeToString(sum[:8]) + "-"
}

// OpenWorkspace makes the folder where there is none, and finds out what lies in it.
func OpenWorkspace(dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("files: workspace: %w", err)
	}
	// Agents that are other users of this machine may be let in by its group; what people bring is the gateway's own to give.
	if err := os.MkdirAll(filepath.Join(dir, uploaded), 0o750); err != nil {
		return nil, fmt.Errorf("files: workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("files: workspace: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("files: workspace: %w", err)
	}
	w := &Workspace{dir: dir, real: real, root: root}
	if err := w.Count(); err != nil {
		_ = root.Close() // the other error tells more
		return nil, err
	}
	return w, nil
}

// Close lets go of the folder.
func (w *Workspace) Close() error { return w.root.Close() }

// Path is where a file of the workspace lies on this machine.
func (w *Workspace) Path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// Clean turns a path that somebody names, absolute or relative to the workspace, into the name of a file in it. It looks at
// nothing on the disk. The error is ErrOutside.
func (w *Workspace) Clean(path string) (string, error) {
	if bare, ok := strings.CutPrefix(path, "file://"); ok {
		if path = strings.TrimPrefix(bare, "localhost"); !strings.HasPrefix(path, "/") {
			return "", ErrOutside // it is another machine's
		}
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(path) > maxPath || !utf8.ValidString(path) {
		return "", ErrOutside // nothing that a line or JSON can hold
	}
	name := filepath.Clean(filepath.FromSlash(path))
	if filepath.IsAbs(name) {
		inside := false
		for _, dir := range []string{w.dir, w.real} {
			if rel, err := filepath.Rel(dir, name); err == nil && !inside && filepath.IsLocal(rel) {
				name, inside = rel, true
			}
		}
		if !inside {
			return "", ErrOutside
		}
	}
	if path == "" || name == "." || !filepath.IsLocal(name) || strings.HasPrefix(path, "~") {
		return "", ErrOutside
	}
	return filepath.ToSlash(name), nil
}

// maxPath bounds a path, in bytes, as systems do.
const maxPath = 4096

// OwnerOf is whose upload a file of the workspace is; empty where it is an agent's.
func OwnerOf(name string) string {
	id, ok := strings.CutPrefix(name, uploaded+"/")
	if !ok {
		if name == uploaded {
			return Operator
		}
		return ""
	}
	owner, _, _ := strings.Cut(id, "/")
	return owner
}

// Opened is a file of the workspace, open to be read.
type OpenFile struct {
	*os.File
	Name string // its last element, as it was named
	Info fs.FileInfo
	// Origin is the same as long as nobody writes to the file.
	Origin string
}

// Open opens a file to read that somebody names by its path. sees decides on the name of the file that it leads to: a
// symbolic link is followed within the workspace, and is not a way around. Where it leads out of it the error is ErrOutside, where there is no
// such file, or sees says no, fs.ErrNotExist.
func (w *Workspace) Open(file string, sees func(name string) bool) (*OpenFile, error) {
	name, err := w.Clean(file)
	if err != nil {
		return nil, err
	}
	last := path.Base(name)
	if !sees(name) {
		return nil, fs.ErrNotExist
	}
	at, err := filepath.EvalSymlinks(filepath.Join(w.real, filepath.FromSlash(name)))
	if err != nil {
		return nil, fs.ErrNotExist // whatever else it is, it tells of what lies there
	}
	if name, err = filepath.Rel(w.real, at); err != nil || !filepath.IsLocal(name) {
		return nil, ErrOutside
	}
	if name = filepath.ToSlash(name); !sees(name) {
		return nil, fs.ErrNotExist
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|nonblock, 0) // a pipe is not waited for
	if err != nil {
		return nil, fs.ErrNotExist
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // nothing was written
		return nil, fs.ErrNotExist
	}
	return &OpenFile{File: f, Name: last, Info: info, Origin: fmt.Sprintf("workspace %s %d %d", name, info.Size(), info.ModTime().UnixNano())}, nil
}

// Place writes a file for an owner, where it is that of a conversation (or of none: empty). It is there whole or not at all, and
// durable when Place returns. The result is its name in the workspace.
func (w *Workspace) Place(owner, conversation, name string, r io.Reader) (string, error) {
	folder := path.Join(uploaded, owner)
	if conversation != "" {
		folder = path.Join(folder, conversationPrefix+Folder(conversation))
	}
	folder = path.Join(folder, rand.Text()[:12])
	name = path.Join(folder, pathName(name))
	n, err := w.write(folder, name, r)
	if err != nil {
		return "", errors.Join(fmt.Errorf("files: place: %w", err), w.root.RemoveAll(folder))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sizes[owner] += n
	return name, nil
}

// conversationPrefix stands before the names of folders of conversations.
const conversationPrefix = "c-"

func (w *Workspace) write(folder, name string, r io.Reader) (n int64, err error) {
	if err := w.root.MkdirAll(folder, 0o750); err != nil {
		return 0, err
	}
	part := path.Join(folder, ".part")
	f, err := w.root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return 0, err
	}
	if n, err = io.Copy(f, r); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if err := w.root.Rename(part, name); err != nil {
		return 0, err
	}
	for dir := folder; dir != "."; dir = path.Dir(dir) {
		if err := syncDir(filepath.Join(w.real, dir)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Remove takes an upload away, with its folder. One that is not there is no error.
func (w *Workspace) Remove(name string) error {
	owner := OwnerOf(name)
	if owner == "" {
		return ErrOutside
	}
	if info, err := w.root.Lstat(name); err == nil {
		w.mu.Lock()
		w.sizes[owner] -= info.Size()
		w.mu.Unlock()
	}
	return w.removeAll(path.Dir(name))
}

// RemoveOwner takes all away that an owner has brought.
func (w *Workspace) RemoveOwner(owner string) error {
	err := w.removeAll(path.Join(uploaded, owner))
	return errors.Join(err, w.Count())
}

// RemoveConversation takes away what was brought into a conversation.
func (w *Workspace) RemoveConversation(conversation string) error {
	owners, err := fs.ReadDir(w.root.FS(), uploaded)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: remove: %w", err)
	}
	changed := false
	for _, o := range owners {
		folder := path.Join(uploaded, o.Name(), conversationPrefix+Folder(conversation))
		if _, err := w.root.Lstat(folder); err != nil {
			continue
		}
		if err := w.removeAll(folder); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return w.Count()
}

func (w *Workspace) removeAll(folder string) error {
	if err := w.root.RemoveAll(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: remove: %w", err)
	}
	return nil
}

// Count looks at how much each owner has brought: agents may take files away.
func (w *Workspace) Count() error {
	sizes := map[string]int64{}
	err := fs.WalkDir(w.root.FS(), uploaded, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if info, err := e.Info(); err == nil {
			sizes[OwnerOf(name)] += info.Size()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("files: workspace: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sizes = sizes
	return nil
}

// Stored is how many bytes a user has brought, and all users of the tenant.
func (w *Workspace) StoredBytes(tenant, subject string) (ofOwner, ofTenant int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sum(w.sizes, tenant, subject)
}

func sum(sizes map[string]int64, tenant, subject string) (ofOwner, ofTenant int64) {
	if subject != "" {
		ofOwner = sizes[Owner(tenant, subject)]
	}
	prefix := tenantPrefix(tenant)
	for owner, n := range sizes {
		if strings.HasPrefix(owner, prefix) {
			ofTenant += n
		}
	}
	return ofOwner, ofTenant
}
