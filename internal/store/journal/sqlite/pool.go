package sqlite

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/store/journal"
)

// pool lends the readers' connections. If all of them are lent, readers wait. A nil connection means that the file couldn't be
// opened.
type pool struct{ conns chan *conn }

// newPool returns an empty pool. connect fills it.
func newPool() *pool { return &pool{make(chan *conn, readerCount)} }

// refill puts connections into the pool. Nil connections make readers fail with errUnavailable instead of waiting.
func (p *pool) refill(conns []*conn) {
	for _, c := range conns {
		p.conns <- c
	}
}

// drain closes all connections, each after its current read. It waits for the current reads, so f in readTx must not call the
// writer.
func (p *pool) drain() error {
	var errs []error
	for range readerCount {
		if c := <-p.conns; c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}

// errUnavailable is returned to readers while the file can't be reopened.
var errUnavailable = errors.New("journal: the file couldn't be reopened after a failed commit")

// readTx runs f in one read transaction, so that f sees one state of the file. f must be short and must not block. A long
// transaction would keep the write-ahead log from being restarted.
func (j *Journal) readTx(ctx context.Context, f func(*conn) error) error {
	// select chooses at random among ready cases, so the reasons to refuse are checked first.
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c := <-j.readers.conns:
		// A nil connection is returned as well, because drain waits for readerCount of them.
		defer func() { j.readers.conns <- c }()
		if c == nil {
			return errUnavailable
		}
		return c.snapshot(func() error { return f(c) })
	case <-ctx.Done():
		return ctx.Err()
	case <-j.ctx.Done():
		return journal.ErrClosed
	}
}
