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
	// lookEvery is how often a file is looked at, at most: a change counts after this time.
	lookEvery = 5 * time.Second
	// maxFile bounds a file of keys, in bytes.
	maxFile = 1 << 20
)

// source is where keys come from.
type source interface {
	// find returns the keys that a token with this kid and algorithm may have been signed with, at least one.
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

// file is a source that is read again when its file has changed. While that can't be read, or holds nonsense, because it
// is being written, the keys of before count.
type file struct {
	path  string
	parse func([]byte) ([]key, error)
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	have   []byte
	keys   fixed
}

func openFile(path string, parse func([]byte) ([]key, error), log *slog.Logger) (*file, error) {
	f := &file{path: path, parse: parse, log: log}
	return f, f.read()
}

// read takes the file's present content. mu is held, or nobody else has f yet. Files are compared by their content: a
// mounted secret is swapped by a link, and times have too coarse a grain.
func (f *file) read() error {
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

func (f *file) find(ctx context.Context, kid, alg string) ([]jwt.VerificationKey, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) >= lookEvery {
		if err := f.read(); err != nil {
			f.log.Warn("keys of users not read; the last good ones go on counting", "error", err)
		}
	}
	return f.keys.find(ctx, kid, alg)
}
