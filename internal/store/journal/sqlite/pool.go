package sqlite

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/store/journal"
)

// pool lends connections to those who read. It holds readerCount of them, those that are lent included; while it is empty
// readers wait, and a nil one says that the file can't be opened.
type pool struct{ conns chan *conn }

func newPool() *pool { return &pool{make(chan *conn, readerCount)} }

func (p *pool) refill(conns []*conn) {
	for _, c := range conns {
		p.conns <- c
	}
}

// drain takes all connections out and closes them, each when its reader has finished.
func (p *pool) drain() error {
	var errs []error
	for range readerCount {
		if c := <-p.conns; c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}

// errUnavailable is what readers get while the file can't be opened anew.
var errUnavailable = errors.New("journal: the file could not be opened anew after a failed commit")

// read runs f on a connection, in one read transaction: all that f sees is of one moment. f is short and waits for nothing.
func (j *Journal) readTx(ctx context.Context, f func(*conn) error) error {
	// Of several that are ready select takes any, so what forbids the read is looked at first.
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c := <-j.readers.conns:
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
