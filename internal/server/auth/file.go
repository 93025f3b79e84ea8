package auth

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// lookEvery is the minimum interval between checks of a file, and so the delay until a change applies.
	lookEvery = 5 * time.Second
	// maxFile is the largest file of keys in bytes.
	maxFile = 1 << 20
)

// source provides keys.
//
// A source may block, for the network or a file, and respects the context. Several goroutines may call it.
type source interface {
	// find returns the keys that may have signed a token with this kid and algorithm. Without any, it returns an error.
	find(ctx context.Context, kid, alg string) ([]jwt.VerificationKey, error)
}

// fixed is a source that never changes.
type fixed []key

func (f fixed) find(_ context.Context, kid, alg string) ([]jwt.VerificationKey, error) {
	if fit := fitting(f, kid, alg); len(fit) > 0 {
		return fit, nil
	}
	return nil, errNoKey
}

// file is a source that reads its file again after a change. While the file is unreadable or invalid, because it is being
// written, the previous keys apply.
type file struct {
	path  string
	parse func([]byte) ([]key, error)
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	have   []byte
	keys   fixed
}

// openFile returns a source for a file. It fails if the file can't be read or parsed now, so that a wrong
// configuration is found at the start. Later failures are only logged.
func openFile(path string, parse func([]byte) ([]key, error), log *slog.Logger) (*file, error) {
	f := &file{path: path, parse: parse, log: log}
	return f, f.load()
}

// load loads the file. The caller must hold mu, unless it created f. Changes are detected by the content: a mounted secret is
// replaced by a link, and modification times are too coarse.
func (f *file) load() error {
	f.looked = time.Now()
	r, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	if len(b) > maxFile {
		return fmt.Errorf("read keys: %s is larger than %d bytes", f.path, maxFile)
	}
	if f.keys != nil && bytes.Equal(b, f.have) {
		return nil
	}
	keys, err := f.parse(b)
	if err != nil {
		return fmt.Errorf("read keys of %s: %w", f.path, err)
	}
	f.have, f.keys = b, keys
	return nil
}

// The mutex is locked while the file is read, so other tokens wait for it. Files are small and local.
func (f *file) find(ctx context.Context, kid, alg string) ([]jwt.VerificationKey, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) >= lookEvery {
		if err := f.load(); err != nil {
			f.log.Warn("the users' keys can't be read; the last valid keys stay in use", "error", err)
		}
	}
	return f.keys.find(ctx, kid, alg)
}
