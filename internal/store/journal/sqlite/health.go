package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Healthy implements [journal.Journal]. While commits fail for want of space it also has the writer try again, at most
// once a second, so that a gateway that takes nothing in learns of the space that it has got.
func (j *Journal) Healthy() error {
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	err := j.health.get()
	if err != nil && j.health.probe() {
		// The answer is for the next caller: this one must not wait for a disk that hangs.
		r := &request{op: func(t *tx) error {
			return t.exec("INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', ?)", t.at)
		}, result: make(chan error, 1)}
		if perr := j.queue.push(r); perr != nil {
			return perr
		}
	}
	return err
}

// health is why commits fail; nil while they don't.
type health struct {
	mu     sync.Mutex // protects what follows
	err    error
	probed time.Time
}

// set notes how the last commit went and returns what was noted before.
func (h *health) swap(err error) (was error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, h.err = h.err, err
	return was
}

func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *health) failing() bool { return h.get() != nil }

// probe reports whether it is time to look again.
func (h *health) probe() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.probed) < time.Second {
		return false
	}
	h.probed = time.Now()
	return true
}

// reserveSize is what the ballast holds free for the ends of turns, in bytes: some hundred commits of a thousand each.
const reserveSize = 8 << 20

// reserve is the ballast file. Only the writer touches it.
type reserve struct {
	path     string
	released bool
	lastTry  time.Time
}

func newReserve(dir string) *reserve { return &reserve{path: filepath.Join(dir, "ballast")} }

// restore writes the ballast where it is missing, at most once a second; false where there is no space for it.
func (r *reserve) restore() bool {
	if time.Since(r.lastTry) < time.Second {
		return false
	}
	r.lastTry = time.Now()
	return r.writeBallast() == nil
}

// fill writes the ballast where it is missing or too short.
func (r *reserve) writeBallast() (err error) {
	r.released = true
	if fi, err := os.Stat(r.path); err == nil && fi.Size() >= reserveSize {
		r.released = false
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("ballast: %w", err)
	}
	block := make([]byte, 1<<20)
	for n := 0; n < reserveSize && err == nil; n += len(block) {
		_, err = f.Write(block) // zeros that take space, unlike a hole
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("ballast: %w", err), remove(r.path))
	}
	r.released = false
	return nil
}

// release gives the ballast's space back; false where there is none.
func (r *reserve) release() bool {
	if r.released {
		return false
	}
	r.released = true
	r.lastTry = time.Now()
	return os.Remove(r.path) == nil
}
