// Whether the store can write. A full disk is detected by a reserve, which leaves room to end turns.

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

// Healthy implements [journal.Journal]. After a commit failed for lack of space, it also triggers a small commit, at most once a
// second. So an idle gateway notices when there is space again.
func (j *Journal) Healthy() error {
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	err := j.health.get()
	if err != nil && j.health.probe() {
		// The result is for the next caller: this one must not wait for a blocked disk.
		r := &request{op: func(t *tx) error {
			return t.exec("INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', ?)", t.at)
		}, result: make(chan error, 1)}
		if perr := j.queue.push(r); perr != nil {
			return perr
		}
	}
	return err
}

// health is the error of the last commit, nil if it succeeded. The writer sets it, and any goroutine may read it.
type health struct {
	mu     sync.Mutex // protects the fields below
	err    error
	probed time.Time
}

// swap records the result of the last commit and returns the previous one. The caller logs only changes, so a full disk doesn't
// fill the log.
func (h *health) swap(err error) (was error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, h.err = h.err, err
	return was
}

// get returns the error of the last commit.
func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// probe reports whether a trial commit is due. Without it, a gateway whose users stopped writing would report a full disk
// forever.
func (h *health) probe() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.probed) < time.Second {
		return false
	}
	h.probed = time.Now()
	return true
}

// reserveSize is the size of the ballast in bytes, enough for some hundred commits that each end a thousand turns.
const reserveSize = 8 << 20

// reserve is the ballast file. On a full disk the writer deletes it and uses the space only for batches that end turns, so that
// running turns get an end even then. Only the writer uses it, except during Open.
type reserve struct {
	path     string
	released bool
	lastTry  time.Time
}

func newReserve(dir string) *reserve { return &reserve{path: filepath.Join(dir, "ballast")} }

// restore creates the ballast if it is missing, at most once a second. It reports whether the ballast exists. The limit
// prevents each refused batch from writing 8 MiB to a full disk.
func (r *reserve) restore() bool {
	if time.Since(r.lastTry) < time.Second {
		return false
	}
	r.lastTry = time.Now()
	return r.writeBallast() == nil
}

// writeBallast creates or extends the ballast file. released stays true until the file is complete.
func (r *reserve) writeBallast() (err error) {
	r.released = true
	// The ballast of an earlier process is used as it is.
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
		_, err = f.Write(block) // zeros, because a hole takes no space
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("ballast: %w", err), remove(r.path))
	}
	r.released = false
	return nil
}

// release deletes the ballast. It reports false if it was already released.
func (r *reserve) release() bool {
	if r.released {
		return false
	}
	r.released = true
	// The attempt to create the ballast again waits a second, or the released space would be taken back at once.
	r.lastTry = time.Now()
	return os.Remove(r.path) == nil
}
