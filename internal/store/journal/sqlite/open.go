// Opening a folder: the lock, the file, its migrations, the index, and the goroutines that live with it.

package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Sync says when a commit counts as durable.
type Sync string

const (
	// Full syncs every commit: nothing that readers have received is lost, even in a power failure. Other packages select it by the configured
	// text, or by default.
	Full Sync = "full"
	// Normal syncs checkpoints only: a crash of the process loses nothing, a power cut may lose the newest commits.
	Normal Sync = "normal"
)

// Options configure a journal.
type Options struct {
	Dir  string // created if missing
	Sync Sync   // Full if empty
	// TraceRetention is how long traces are kept. If it is 0, it is journal.DefaultTraceRetention.
	TraceRetention time.Duration
	Logger         *slog.Logger // slog.Default if nil
	// Crash is called by tests at named points: before-commit, after-commit-before-ack, mid-settle, mid-garbage, mid-delete,
	// mid-backup. It is nil in production.
	Crash func(point string)

	// Tests override restartAt and spare with these if they aren't 0.
	restartAt, spare int64
}

// Journal is a journal in a folder. Create it with [Open]. Three goroutines belong to it: the writer, the checkpointer and the
// janitor. Close ends them.
type Journal struct {
	opt    Options
	log    *slog.Logger
	path   string
	flock  *flock.Flock
	guard  *os.File // locks the database file; nil if unsupported
	index  index
	queue  *queue
	health health

	// Only for the writer:
	conn        *conn
	waste       garbage
	nextRow     int64
	commits     int64
	buf         []byte // texts sealed in this transaction
	needsReopen bool   // the result of a commit is unknown, so the next one reopens the file first
	reserve     *reserve
	// faults makes commits of tests fail at named points.
	faults func(point string) error

	readers      *pool
	checkpointer *checkpointer
	janitor      *janitor
	// maintenance excludes a running backup. It is a channel instead of a mutex, so that a context can end the wait.
	maintenance chan struct{}

	ctx       context.Context // done when Close begins
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

var (
	_ journal.Journal        = (*Journal)(nil)
	_ journal.DamageReporter = (*Journal)(nil)
)

// readerCount is the number of concurrent reads. They are short, so more would only compete for the cores.
const readerCount = 4

// Open opens or creates the journal of a folder. Errors wrap journal.ErrLocked, ErrForeign, ErrNewer, ErrCorrupt if the database
// file can't be read, or ErrFull if the disk is too full even to read. Damaged conversations are quarantined: see
// [Journal.Damaged].
func Open(opt Options) (_ *Journal, err error) {
	opt.Sync = cmp.Or(opt.Sync, Full)
	opt.TraceRetention = cmp.Or(opt.TraceRetention, journal.DefaultTraceRetention)
	opt.restartAt = cmp.Or(opt.restartAt, restartAt)
	opt.spare = cmp.Or(opt.spare, spare)
	if opt.Sync != Full && opt.Sync != Normal {
		return nil, fmt.Errorf("open journal: sync is %q, not %q or %q", opt.Sync, Full, Normal)
	}
	if opt.Dir == "" {
		return nil, errors.New("open journal: the folder is missing")
	}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{
		opt: opt, log: opt.Logger, path: filepath.Join(opt.Dir, fileName), queue: newQueue(), reserve: newReserve(opt.Dir),
		maintenance: make(chan struct{}, 1),
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	j.readers = &pool{make(chan *conn, readerCount)} // connect fills it
	if j.log == nil {
		j.log = slog.Default()
	}
	// The lock comes before any access to the database file: a second gateway must not even migrate it.
	if j.flock, err = lock(opt.Dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	err = j.attach()
	// SQLite needs some space even to open a file with a write-ahead log.
	if errors.Is(err, journal.ErrFull) && j.reserve.release() {
		j.log.Warn("journal: the disk is full; the reserve is released to open the journal")
		err = j.attach()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), j.unlock())
	}
	if err := j.reserve.writeBallast(); err != nil {
		j.log.Error("journal: can't create the reserve for a full disk", "error", err)
		j.health.swap(fmt.Errorf("%w: %w", journal.ErrFull, err))
	}
	j.checkpointer = newCheckpointer(j)
	j.janitor = newJanitor(j)
	j.tasks.Go(j.write)
	j.tasks.Go(j.checkpointer.run)
	j.tasks.Go(j.janitor.run)
	return j, nil
}

// attach creates, checks or migrates the file, and opens it. On an error nothing stays open.
func (j *Journal) attach() error {
	err := j.protect() // before a migration
	if err == nil {
		err = prepare(j.opt.Dir, version, migrations, j.log)
	}
	if err == nil {
		err = j.protect() // if prepare created the file
	}
	if err == nil {
		err = j.connect()
	}
	if err == nil {
		return nil
	}
	if full(err) {
		err = fmt.Errorf("%w: %w", journal.ErrFull, err)
	}
	return errors.Join(j.malformed(err), j.hangUp())
}

// protect locks the database file if it exists and this journal hasn't locked it yet. On systems without such locks, only
// leat.lock protects the folder.
func (j *Journal) protect() error {
	if j.guard != nil {
		return nil
	}
	f, err := guard(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		j.log.Debug("journal: only leat.lock protects the folder", "error", err)
		return nil
	case err != nil:
		return err
	}
	j.guard = f
	return nil
}

// unlock releases the folder. SQLite must have closed the file; see guard. The guard is released first, so that a waiting
// gateway can't acquire leat.lock alone.
func (j *Journal) unlock() error {
	var err error
	if j.guard != nil {
		err = j.guard.Close()
	}
	return errors.Join(err, j.flock.Close())
}

// connect opens the connections and rebuilds the state in memory. It is called by Open and, in the writer's goroutine, by
// reopen.
func (j *Journal) connect() (err error) {
	if j.conn, err = dial(j.path, "busy_timeout=5000", "secure_delete=on", "temp_store=memory", "wal_autocheckpoint=0",
		"synchronous="+string(j.opt.Sync), "cache_size=-32768"); err != nil {
		return err
	}
	// SQLite answers with the mode that is in effect, and doesn't fail if it can't change it.
	mode, err := j.conn.queryRow("PRAGMA journal_mode=wal")
	if err != nil {
		return err
	}
	if mode == nil || mode.text(0) != "wal" {
		return fmt.Errorf("%s: no write-ahead log on this file system", j.path)
	}
	logs, waste, next, damaged, err := scan(j.conn)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		_ = j.quarantine(d) // returns its argument
	}
	totals, err := countAll(j.conn, logs)
	if err != nil {
		return err
	}
	j.index.mu.Lock()
	j.index.logs, j.index.usage, j.waste, j.nextRow = logs, totals, waste, next
	j.index.term = newTerm()
	// Readers that took a view before this must look again.
	j.index.dropCount++
	j.index.cache = cache{}
	j.index.mu.Unlock()
	conns := make([]*conn, readerCount)
	for i := range conns {
		if conns[i], err = dial(j.path, "busy_timeout=5000", "query_only=on", "temp_store=memory", "cache_size=-4096"); err != nil {
			for _, c := range conns[:i] {
				err = errors.Join(err, c.close())
			}
			return err
		}
	}
	j.readers.refill(conns)
	return nil
}

// disconnect closes the connections of connect, after the current reads. New reads wait until refill.
func (j *Journal) disconnect() error {
	err := j.readers.drain()
	return errors.Join(err, j.hangUp())
}

// hangUp closes the writer's connection.
func (j *Journal) hangUp() (err error) {
	if j.conn != nil {
		err = j.conn.close()
		j.conn = nil
	}
	return err
}

// reopen discards SQLite's state in memory, so that the next read sees what is on the disk. Only the writer calls it. After a
// failed commit SQLite's caches and the file may differ. The checkpointer's connection is closed too, because SQLite shares
// state between connections of a process.
func (j *Journal) reopen() error {
	j.checkpointer.mu.Lock()
	defer j.checkpointer.mu.Unlock()
	if err := errors.Join(j.disconnect(), j.checkpointer.close()); err != nil {
		j.log.Warn("journal: close before reopening", "error", err)
	}
	if err := j.connect(); err != nil {
		j.readers.refill(make([]*conn, readerCount))
		return errors.Join(err, j.hangUp())
	}
	// The recovered log is copied to the main file and synced. Before that it might be lost again.
	if err := j.conn.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		err = errors.Join(err, j.disconnect())
		j.readers.refill(make([]*conn, readerCount))
		return err
	}
	j.needsReopen = false
	j.log.Info("journal: reopened")
	return nil
}

// Close implements [journal.Journal]. It waits for queued requests and for maintenance, but not for reads beyond the one that
// each connection is running.
func (j *Journal) Close() error {
	j.closeOnce.Do(func() {
		j.cancel()      // ends reads, the janitor and a backup
		j.queue.close() // ends the writer after the queued requests
		j.tasks.Wait()
		j.maintenance <- struct{}{} // waits for the maintenance that runs
		j.checkpointer.mu.Lock()
		defer j.checkpointer.mu.Unlock()
		j.closeErr = errors.Join(j.checkpointer.close(), j.disconnect(), j.unlock())
	})
	return j.closeErr
}

// crash calls the hook with which tests kill the process at a named point.
func (j *Journal) crash(point string) {
	if j.opt.Crash != nil {
		j.opt.Crash(point)
	}
}

// fault returns the error with which a test makes a commit fail, or nil.
func (j *Journal) fault(point string) error {
	if j.faults != nil {
		return j.faults(point)
	}
	return nil
}

// do runs an operation in the writer's next transaction. size estimates the bytes that it writes.
func (j *Journal) do(ctx context.Context, size int, op func(*tx) error) error {
	return j.queue.do(ctx, &request{op: op, size: size + 256, result: make(chan error, 1)})
}
