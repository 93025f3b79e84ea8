package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/leat-dev/leat/event"
)

// syncedFile appends to a plain file. All waiting appends share one write and one fdatasync, the group commit that a database can't be faster
// than on the same disk.
type syncedFile struct {
	file     *os.File
	requests chan syncRequest
	done     chan struct{} // closed when the goroutine has ended
}

type syncRequest struct {
	b    []byte
	done chan error
}

// newSyncedFile creates a file in a folder, for up to n goroutines that append at the same time.
func newSyncedFile(dir string, n int) (*syncedFile, error) {
	f, err := os.CreateTemp(dir, "bare")
	if err != nil {
		return nil, err
	}
	s := &syncedFile{file: f, requests: make(chan syncRequest, n), done: make(chan struct{})}
	go s.run()
	return s, nil
}

func (s *syncedFile) run() {
	defer close(s.done)
	var buf []byte
	var waiting []chan error
	for r := range s.requests {
		buf, waiting = append(buf[:0], r.b...), append(waiting[:0], r.done)
		// Everything that arrived during the last write and sync is written together. No append waits for another one to
		// arrive.
		for n := len(s.requests); n > 0; n-- {
			r := <-s.requests
			buf, waiting = append(buf, r.b...), append(waiting, r.done)
		}
		_, err := s.file.Write(buf)
		if err == nil {
			err = syscall.Fdatasync(int(s.file.Fd()))
		}
		for _, w := range waiting {
			w <- err
		}
	}
}

// append returns when b is on the disk. b must not change before.
func (s *syncedFile) append(b []byte) error {
	done := make(chan error, 1)
	s.requests <- syncRequest{b, done}
	return <-done
}

// close removes the file. No append may run.
func (s *syncedFile) close() error {
	close(s.requests)
	<-s.done
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// fileAppends is the baseline: as many bytes for each event appended to a plain file.
func fileAppends(ctx context.Context, e *env, size int) (l load, err error) {
	f, err := newSyncedFile(e.dir, e.size.appendStreams)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return appendLoad(ctx, e.size, func(_ context.Context, _ int, _ int64, e *event.Event) error {
		// An event is encoded, as a journal has to, and padded to the journal's bytes or cut.
		b, err := e.AppendJSON(make([]byte, 0, 2*size))
		if err != nil {
			return err
		}
		return f.append(b[:size])
	}, nil)
}
