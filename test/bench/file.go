package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/leat-dev/leat/event"
)

// fileAppends is the baseline: as many bytes for each event appended to a plain file. All waiting appends share one write and one fdatasync, the
// group commit that a database can't be faster than on the same disk.
func fileAppends(ctx context.Context, e *env, size int) (l load, err error) {
	f, err := os.Create(filepath.Join(e.dir, "bare"))
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	type request struct {
		b    []byte
		done chan error
	}
	// The channel has space for one append of each stream, so no stream waits for a place in it.
	requests := make(chan request, e.size.appendStreams)
	written := make(chan struct{})
	go func() {
		defer close(written)
		var buf []byte
		var waiting []chan error
		for r := range requests {
			buf, waiting = append(buf[:0], r.b...), append(waiting[:0], r.done)
			// Everything that arrived during the last write and sync is written together. No append waits for another one to
			// arrive.
			for n := len(requests); n > 0; n-- {
				r := <-requests
				buf, waiting = append(buf, r.b...), append(waiting, r.done)
			}
			_, err := f.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(f.Fd()))
			}
			for _, w := range waiting {
				w <- err
			}
		}
	}()
	l, err = appendLoad(ctx, e.size, func(_ context.Context, _ int, _ int64, e *event.Event) error {
		// An event is encoded, as a journal has to, and padded to the journal's bytes or cut.
		b, err := e.AppendJSON(make([]byte, 0, 2*size))
		if err != nil {
			return err
		}
		done := make(chan error, 1)
		requests <- request{b[:size], done}
		return <-done
	}, nil)
	close(requests)
	<-written
	return l, err
}
