package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// acquire makes the caller the only writer of an upload until it calls release. It asks the current writer to stop, because that writer
// probably reads from a dead connection whose client has reconnected. It repeats the request every stopAgain, because a writer that has only
// just begun may not be able to stop yet. After giveWay it returns ErrBusy. stop, which may be nil, is called when another request wants to
// write.
func (u *Uploads) acquire(ctx context.Context, entry *upload, stop func()) (release func(), err error) {
	timeout := time.NewTimer(giveWay)
	defer timeout.Stop()
	ticker := time.NewTicker(stopAgain)
	defer ticker.Stop()
	for {
		u.mu.Lock()
		before := entry.stop
		u.mu.Unlock()
		select {
		case entry.slot <- struct{}{}:
			u.mu.Lock()
			entry.stop = stop
			u.mu.Unlock()
			return func() {
				u.mu.Lock()
				entry.stop = nil
				u.mu.Unlock()
				<-entry.slot
			}, nil
		default:
		}
		if before != nil {
			before()
		}
		select {
		case <-ticker.C:
		case <-timeout.C:
			return nil, ErrBusy
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Append adds the bytes of r to an upload, which must be at offset; otherwise the error is ErrOffset. If r fails, the bytes
// before the failure are kept. The error is ErrTooLarge if r exceeds the upload's length. stop is called, perhaps repeatedly,
// when another request wants to write; r must then end.
//
// The returned upload has the offset after the stored bytes even if there is an error, so that the client knows where to resume. Append looks
// the upload up after it has acquired it, because the previous writer may have changed or removed it.
func (u *Uploads) Append(ctx context.Context, id string, offset int64, r io.Reader, stop func()) (current Upload, err error) {
	entry, err := u.find(id)
	if err != nil {
		return current, err
	}
	release, err := u.acquire(ctx, entry, stop)
	if err != nil {
		return current, err
	}
	defer release()
	if current, err = u.Get(id); err != nil {
		return current, err
	}
	if current.Offset != offset {
		return current, ErrOffset
	}
	if current.Done() {
		return current, nil
	}
	f, err := os.OpenFile(u.bytes(id), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return current, fmt.Errorf("files: upload: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	remaining := current.Length - offset
	// Each round is synced, so that a power failure loses at most syncEvery bytes.
	for remaining > 0 {
		n, cerr := io.Copy(f, io.LimitReader(r, min(remaining, syncEvery)))
		remaining -= n
		current.Offset += n
		if serr := f.Sync(); serr != nil {
			return current, fmt.Errorf("files: upload: %w", serr)
		}
		if cerr != nil {
			return current, cerr
		}
		if n == 0 {
			return current, nil // r has ended early
		}
	}
	// The upload is complete. Any further byte means that the client announced a wrong length.
	if n, _ := io.CopyN(io.Discard, r, 1); n > 0 {
		return current, ErrTooLarge
	}
	return current, nil
}

// Finish calls place with a complete upload, once, to move it to its final place, and stores the result. Just before that call,
// the upload's length stops counting toward the owner, because place counts the file where it stores it. If place fails, the
// upload stays and can be finished again.
func (u *Uploads) Finish(ctx context.Context, id string, place func(Upload, *os.File) (json.RawMessage, error)) (Upload, error) {
	entry, err := u.find(id)
	if err != nil {
		return Upload{}, err
	}
	release, err := u.acquire(ctx, entry, nil)
	if err != nil {
		return Upload{}, err
	}
	defer release()
	current, err := u.Get(id)
	if err != nil || current.Done() || current.Offset < current.Length {
		return current, err
	}
	f, err := os.Open(u.bytes(id))
	if err != nil {
		return current, fmt.Errorf("files: upload: %w", err)
	}
	defer f.Close()
	u.count(entry, false)
	if current.Result, err = place(current, f); err != nil {
		u.count(entry, true)
		current.Result = nil
		return current, err
	}
	u.mu.Lock()
	entry.Result = current.Result // even if save fails: the file is in its final place and must not be placed twice
	u.mu.Unlock()
	if err := u.save(&current); err != nil {
		return current, fmt.Errorf("files: upload: %w", err)
	}
	_ = os.Remove(u.bytes(id)) // otherwise OpenUploads does it
	return current, nil
}

// count sets whether an upload's length counts toward its owner.
func (u *Uploads) count(entry *upload, counts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entry.counts = counts
}
