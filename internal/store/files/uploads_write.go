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

// hold makes the caller the one that writes. Whoever does now is told to stop, since it most likely reads from a connection
// that is dead: its sender is back. stop is how the caller is told.
func (u *Uploads) hold(ctx context.Context, one *upload, stop func()) (release func(), err error) {
	late := time.NewTimer(giveWay)
	defer late.Stop()
	for again := time.NewTicker(stopAgain); ; {
		u.mu.Lock()
		before := one.stop
		u.mu.Unlock()
		select {
		case one.one <- struct{}{}:
			again.Stop()
			u.mu.Lock()
			one.stop = stop
			u.mu.Unlock()
			return func() {
				u.mu.Lock()
				one.stop = nil
				u.mu.Unlock()
				<-one.one
			}, nil
		default:
		}
		if before != nil {
			before()
		}
		select {
		case <-again.C:
		case <-late.C:
			again.Stop()
			return nil, ErrBusy
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		}
	}
}

// Append adds to an upload what r holds, at the place where it goes on: ErrOffset says that this is another than offset. What
// came before r failed stays. ErrTooLarge says that r holds more than the rest. stop is called, perhaps often, when somebody
// else has come to write; r has to end then.
func (u *Uploads) Append(ctx context.Context, id string, offset int64, r io.Reader, stop func()) (now Upload, err error) {
	one, err := u.find(id)
	if err != nil {
		return now, err
	}
	release, err := u.hold(ctx, one, stop)
	if err != nil {
		return now, err
	}
	defer release()
	if now, err = u.Get(id); err != nil {
		return now, err
	}
	if now.Offset != offset {
		return now, ErrOffset
	}
	if now.Done() {
		return now, nil
	}
	f, err := os.OpenFile(u.bytes(id), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return now, fmt.Errorf("files: upload: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	left := now.Length - offset
	for left > 0 {
		n, cerr := io.Copy(f, io.LimitReader(r, min(left, syncEvery)))
		left -= n
		now.Offset += n
		if serr := f.Sync(); serr != nil {
			return now, fmt.Errorf("files: upload: %w", serr)
		}
		if cerr != nil {
			return now, cerr
		}
		if n == 0 {
			return now, nil // that was all for now
		}
	}
	if n, _ := io.CopyN(io.Discard, r, 1); n > 0 {
		return now, ErrTooLarge
	}
	return now, nil
}

// Finish has place bring a whole upload to where it belongs, once, and keeps what that returns as the result. Until then the
// length counts for the owner; it does not any more when place is called, which counts the file where it goes to.
func (u *Uploads) Finish(ctx context.Context, id string, place func(Upload, *os.File) (json.RawMessage, error)) (Upload, error) {
	one, err := u.find(id)
	if err != nil {
		return Upload{}, err
	}
	release, err := u.hold(ctx, one, nil)
	if err != nil {
		return Upload{}, err
	}
	defer release()
	now, err := u.Get(id)
	if err != nil || now.Done() || now.Offset < now.Length {
		return now, err
	}
	f, err := os.Open(u.bytes(id))
	if err != nil {
		return now, fmt.Errorf("files: upload: %w", err)
	}
	defer f.Close()
	u.count(one, false)
	if now.Result, err = place(now, f); err != nil {
		u.count(one, true)
		now.Result = nil
		return now, err
	}
	u.mu.Lock()
	one.Result = now.Result // also where it can't be written down: it is where it belongs, and is not placed twice
	u.mu.Unlock()
	if err := u.save(&now); err != nil {
		return now, fmt.Errorf("files: upload: %w", err)
	}
	_ = os.Remove(u.bytes(id)) // else the next start does it
	return now, nil
}

func (u *Uploads) count(one *upload, counts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one.counts = counts
}
