package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// indexFile lists the installed plugins.
	indexFile = "index.json"
	// indexVersion is the version of its format.
	indexVersion = 1
	// filesDir is the subfolder of an installation with the plugin's files.
	filesDir = "files"
)

// Plugin is an installed plugin, as stored in the index.
type Plugin struct {
	Manifest Manifest `json:"manifest"`
	// Origin is its source, such as npm:pkg@1.2.0, folder:/path or archive:https://host/path.
	Origin    string    `json:"origin"`
	SHA256    string    `json:"sha256,omitempty"` // of its archive
	Installed time.Time `json:"installed"`
	// Folder is its installation folder below the store's. Root is the folder with the manifest, relative to the installation's
	// files.
	Folder string `json:"folder"`
	Root   string `json:"root"`

	// Dir is the absolute path of Root. It is computed when the store is opened.
	Dir string `json:"-"`
}

// index is the content of the index file. Open refuses other versions of its format, so that an older gateway doesn't delete the plugins
// of a newer one as garbage.
type index struct {
	Version int      `json:"version"`
	Plugins []Plugin `json:"plugins"`
}

// Config configures a store.
type Config struct {
	Dir     string // created if it doesn't exist
	Runtime Runtime
	// AllowPrivate permits archives from private and local addresses.
	AllowPrivate bool
	Log          *slog.Logger
}

// Store manages the installed plugins. All methods are safe for concurrent use. The folder must not be shared with another
// process, because Open deletes the files of installations that run in another one.
type Store struct {
	cfg  Config
	http *http.Client
	work chan struct{} // capacity 1: holds a value while an installation or removal runs

	mu      sync.Mutex
	plugins []Plugin // sorted by name
}

// Open reads the index and deletes what interrupted installations left. Call Close to release the store. A missing index means that
// nothing is installed; an unreadable one is an error, because sweep would delete all plugins.
func Open(c Config) (*Store, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	c.Dir = dir
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open plugins: %w", err)
	}
	s := &Store{cfg: c, http: client(c.AllowPrivate), work: make(chan struct{}, 1)}
	b, err := os.ReadFile(filepath.Join(c.Dir, indexFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open plugins: %w", err)
	}
	if err == nil {
		var i index
		if err := json.Unmarshal(b, &i); err != nil {
			return nil, fmt.Errorf("open plugins: %s: %w", indexFile, err)
		}
		if i.Version != indexVersion {
			return nil, fmt.Errorf("open plugins: %s has format version %d; this gateway supports %d", indexFile, i.Version, indexVersion)
		}
		s.plugins = i.Plugins
	}
	for i := range s.plugins {
		s.plugins[i].Dir = filepath.Join(c.Dir, s.plugins[i].Folder, filesDir, s.plugins[i].Root)
	}
	return s, s.sweep()
}

// Close closes idle connections.
func (s *Store) Close() { s.http.CloseIdleConnections() }

// sweep deletes everything in the folder that the index doesn't list. It runs only in Open, before an installation can create a
// folder.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("open plugins: %w", err)
	}
	for _, e := range entries {
		if e.Name() == indexFile || slices.ContainsFunc(s.plugins, func(p Plugin) bool { return p.Folder == e.Name() }) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.cfg.Dir, e.Name())); err != nil {
			return fmt.Errorf("delete the rest of an interrupted installation: %w", err)
		}
	}
	return nil
}

// List returns the installed plugins, sorted by name. The slice is a copy. A plugin is in the list from the commit of its installation on,
// which is before it is started.
func (s *Store) List() []Plugin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.plugins)
}

// find returns the installed plugin with a name.
func (s *Store) find(name string) (Plugin, bool) {
	list := s.List()
	if i := slices.IndexFunc(list, func(p Plugin) bool { return p.Manifest.Name == name }); i >= 0 {
		return list[i], true
	}
	return Plugin{}, false
}

// commit makes plugins the installed ones. The rename in replaceFile is the moment of the change: a crash before it keeps the
// old list. The caller holds the work slot. The list in memory changes only after the file, so List never shows a plugin that a
// crash would lose.
func (s *Store) commit(plugins []Plugin) error {
	slices.SortFunc(plugins, func(a, b Plugin) int { return strings.Compare(a.Manifest.Name, b.Manifest.Name) })
	b, err := json.MarshalIndent(index{indexVersion, plugins}, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(s.cfg.Dir, indexFile), append(b, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", indexFile, err)
	}
	s.mu.Lock()
	s.plugins = plugins
	s.mu.Unlock()
	return nil
}

// replaceFile replaces a file atomically and durably. The new content is synced before the rename; otherwise a power failure
// could leave an empty file under the final name.
func replaceFile(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	if d, derr := os.Open(filepath.Dir(path)); derr == nil {
		_ = d.Sync() // not supported everywhere; the rename is atomic anyway
		_ = d.Close()
	}
	return nil
}

// acquire takes the work slot or returns ErrBusy. It doesn't wait, because an installation may take minutes. release must be
// called exactly once.
func (s *Store) acquire() (release func(), err error) {
	select {
	case s.work <- struct{}{}:
		return func() { <-s.work }, nil
	default:
		return nil, ErrBusy
	}
}

// Remove uninstalls a plugin: it updates the index, stops the plugin and deletes its files, in this order, so that a crash in
// between leaves only garbage for the next Open.
func (s *Store) Remove(name string) error {
	release, err := s.acquire()
	if err != nil {
		return err
	}
	defer release()
	p, ok := s.find(name)
	if !ok {
		return ErrNotFound
	}
	remaining := slices.DeleteFunc(s.List(), func(q Plugin) bool { return q.Manifest.Name == name })
	if err := s.commit(remaining); err != nil {
		return err
	}
	s.cfg.Runtime.Stop(name)
	s.discard(p.Folder)
	return nil
}

// discard deletes an installation's folder. If that fails, the next Open deletes it.
func (s *Store) discard(folder string) {
	if err := os.RemoveAll(filepath.Join(s.cfg.Dir, folder)); err != nil {
		s.cfg.Log.Warn("plugins: files can't be deleted now; the next start deletes them", "folder", folder, "error", err)
	}
}
