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

// uploaded is the folder of a workspace with the files of users. Everything else belongs to the agents.
const uploaded = "uploads"

// Operator is the owner of files uploaded without a user.
const Operator = "operator"

// Workspace is a folder that the gateway shares with its agents, so that both can name files by path. Files of users are in
// uploads/OWNER. All methods are safe for concurrent use.
type Workspace struct {
	dir  string // configured path, absolute
	real string // dir without symbolic links
	root *os.Root

	mu    sync.Mutex
	sizes map[string]int64 // size of the files of each owner, bytes
}

// Owner returns the name of a user's folder. It is a digest, so that it doesn't reveal the user to agents.
func Owner(tenant, subject string) string {
	if subject == "" {
		return Operator
	}
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return tenantPrefix(tenant) + hex.EncodeToString(sum[:12])
}

// tenantPrefix returns the common prefix of the folders of a tenant's users.
func tenantPrefix(tenant string) string {
	sum := sha256.Sum256([]byte("tenant\x00" + tenant))
	return hex.EncodeToString(sum[:8]) + "-"
}

// OpenWorkspace creates the folder if it doesn't exist, and counts the files in it.
func OpenWorkspace(dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("files: workspace: %w", err)
	}
	// The group may read, so that agents can run as another user of this machine. Only the gateway may write uploads.
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
		_ = root.Close() // err is more useful
		return nil, err
	}
	return w, nil
}

// Close releases the folder.
func (w *Workspace) Close() error { return w.root.Close() }

// Path returns the absolute path of a file in the workspace.
func (w *Workspace) Path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// Clean converts a path, absolute or relative to the workspace, to the name of a file in it. It doesn't access the disk, so the
// file may not exist. The error is ErrOutside.
func (w *Workspace) Clean(path string) (string, error) {
	if bare, ok := strings.CutPrefix(path, "file://"); ok {
		if path = strings.TrimPrefix(bare, "localhost"); !strings.HasPrefix(path, "/") {
			return "", ErrOutside // a file on another machine
		}
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(path) > maxPath || !utf8.ValidString(path) {
		return "", ErrOutside // can't be part of a line or of JSON
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

// maxPath limits the length of a path, in bytes, as most systems do.
const maxPath = 4096

// OwnerOf returns the owner of an uploaded file, or "" if the file belongs to an agent.
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

// OpenFile is a file of the workspace that is open for reading.
type OpenFile struct {
	*os.File
	Name string // last element of the requested path
	Info fs.FileInfo
	// Origin identifies the content: it changes when the file is written.
	Origin string
}

// Open opens a file for reading. sees decides by name whether the caller may see a file. It is asked for the requested name and
// for the name after symbolic links are resolved, so a link can't bypass it. If the path or a link leads out of the workspace,
// the error is ErrOutside. If the file doesn't exist, or sees returns false, it is fs.ErrNotExist.
func (w *Workspace) Open(file string, sees func(name string) bool) (*OpenFile, error) {
	name, err := w.Clean(file)
	if err != nil {
		return nil, err
	}
	// sees is asked before the disk is touched, so that a refused caller can't learn what exists.
	last := path.Base(name)
	if !sees(name) {
		return nil, fs.ErrNotExist
	}
	at, err := filepath.EvalSymlinks(filepath.Join(w.real, filepath.FromSlash(name)))
	if err != nil {
		return nil, fs.ErrNotExist // another error would reveal what exists
	}
	if name, err = filepath.Rel(w.real, at); err != nil || !filepath.IsLocal(name) {
		return nil, ErrOutside
	}
	if name = filepath.ToSlash(name); !sees(name) {
		return nil, fs.ErrNotExist
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|nonblock, 0) // must not block on a named pipe
	if err != nil {
		return nil, fs.ErrNotExist
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // nothing was written, so an error doesn't matter
		return nil, fs.ErrNotExist
	}
	return &OpenFile{File: f, Name: last, Info: info, Origin: fmt.Sprintf("workspace %s %d %d", name, info.Size(), info.ModTime().UnixNano())}, nil
}

// Place stores a file of an owner, in the folder of a conversation unless that is empty. The file is durable when Place
// returns. Each file gets a folder with a random name, so that files with the same name don't collide. Place returns the file's
// name in the workspace.
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

// conversationPrefix is the prefix of the folders of conversations. It distinguishes them from the random folders of single
// files.
const conversationPrefix = "c-"

// write writes a file atomically and syncs the folders above it. The root confines all paths to the workspace, even if an agent
// replaces a folder by a link meanwhile.
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

// Remove deletes an uploaded file and its folder. A missing file is not an error.
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

// RemoveOwner deletes all files of an owner.
func (w *Workspace) RemoveOwner(owner string) error {
	err := w.removeAll(path.Join(uploaded, owner))
	return errors.Join(err, w.Count())
}

// RemoveConversation deletes the files of all owners in a conversation. It looks into every owner's folder, because several
// users may have added files.
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

// removeAll deletes a folder inside the workspace. It works on the root, so a link planted by an agent can't make it delete
// elsewhere.
func (w *Workspace) removeAll(folder string) error {
	if err := w.root.RemoveAll(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: remove: %w", err)
	}
	return nil
}

// Count computes the sizes of all owners' files again, because agents may have deleted some of them. The gateway calls it at intervals.
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

// StoredBytes returns the bytes of a user's files and of those of all users of the tenant, as of the last change or Count.
func (w *Workspace) StoredBytes(tenant, subject string) (ofOwner, ofTenant int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sum(w.sizes, tenant, subject)
}

// sum returns the bytes of one owner and of its whole tenant. Folder names begin with the tenant's prefix, so no list of users
// is needed.
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
