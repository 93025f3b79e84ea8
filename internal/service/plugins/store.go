package plugins

import (
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
	// indexFile lists what is installed.
	indexFile = "index.json"
	// indexVersion is that of its format.
	indexVersion = 1
	// filesDir is where the plugin itself lies in its folder.
	filesDir = "files"
)

// Plugin is one that is installed.
type Plugin struct {
	Manifest Manifest `json:"manifest"`
	// Origin says where it came from, such as npm:pkg@1.2.0, folder:/path or archive:https://host/path.
	Origin    string    `json:"origin"`
	SHA256    string    `json:"sha256,omitempty"` // of its archive
	Installed time.Time `json:"installed"`
	// Folder is the one below the store's in which it lies, Root where in it.
	Folder string `json:"folder"`
	Root   string `json:"root"`

	// Dir is the folder in which it runs.
	Dir string `json:"-"`
}

type index struct {
	Version int      `json:"version"`
	Plugins []Plugin `json:"plugins"`
}

// Config says where plugins lie, and what runs them.
type Config struct {
	Dir     string // made where it is missing
	Runtime Runtime
	// AllowPrivate lets archives come from addresses of this machine and its network.
	AllowPrivate bool
	Log          *slog.Logger
}

// Store is where plugins are installed. All methods may be called from several goroutines.
type Store struct {
	cfg  Config
	http *http.Client
	work chan struct{} // one slot, held by who installs or removes

	mu      sync.Mutex
	plugins []Plugin // sorted by name
}

// Open opens the store, and removes what installations that were cut off have left. Close ends it.
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
			return nil, fmt.Errorf("open plugins: %s has version %d, this program knows %d", indexFile, i.Version, indexVersion)
		}
		s.plugins = i.Plugins
	}
	for i := range s.plugins {
		s.plugins[i].Dir = filepath.Join(c.Dir, s.plugins[i].Folder, filesDir, s.plugins[i].Root)
	}
	return s, s.sweep()
}

// Close lets go of what the store holds.
func (s *Store) Close() { s.http.CloseIdleConnections() }

// sweep removes what the index does not name.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("open plugins: %w", err)
	}
	for _, e := range entries {
		isListed := e.Name() == indexFile || slices.ContainsFunc(s.plugins, func(p Plugin) bool { return p.Folder == e.Name() })
		if isListed {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.cfg.Dir, e.Name())); err != nil {
			return fmt.Errorf("remove what an installation left: %w", err)
		}
	}
	return nil
}

// List returns what is installed, sorted by name.
func (s *Store) List() []Plugin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.plugins)
}

func (s *Store) find(name string) (Plugin, bool) {
	for _, p := range s.List() {
		if p.Manifest.Name == name {
			return p, true
		}
	}
	return Plugin{}, false
}

// commit makes a list what is installed: from the rename on it is.
func (s *Store) commit(plugins []Plugin) error {
	slices.SortFunc(plugins, func(a, b Plugin) int { return strings.Compare(a.Manifest.Name, b.Manifest.Name) })
	b, err := json.MarshalIndent(index{indexVersion, plugins}, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(s.cfg.Dir, indexFile), append(b, '\n')); err != nil {
		return fmt.Errorf("write down what is installed: %w", err)
	}
	s.mu.Lock()
	s.plugins = plugins
	s.mu.Unlock()
	return nil
}

// replaceFile writes a file so that it is the old one or the new one, whatever happens.
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
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	if d, derr := os.Open(filepath.Dir(path)); derr == nil {
		_ = d.Sync() // not every system can; the rename is atomic anyway
		_ = d.Close()
	}
	return nil
}

// take gets hold of the one slot for changes.
func (s *Store) acquire() (release func(), err error) {
	select {
	case s.work <- struct{}{}:
		return func() { <-s.work }, nil
	default:
		return nil, ErrBusy
	}
}

// Remove stops a plugin and takes it away, with all of its files.
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

// discard removes a folder. One that can't be removed is rubbish until the next start.
func (s *Store) discard(folder string) {
	if err := os.RemoveAll(filepath.Join(s.cfg.Dir, folder)); err != nil {
		s.cfg.Log.Warn("files of a plugin are left for the next start to remove", "folder", folder, "error", err)
	}
}
