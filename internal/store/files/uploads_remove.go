package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Remove takes an upload away, whoever writes to it. One that is not there is no error.
func (u *Uploads) Remove(ctx context.Context, id string) error {
	entry, err := u.find(id)
	if err != nil {
		return nil //nolint:nilerr // it is gone already
	}
	release, err := u.acquire(ctx, entry, nil)
	if err != nil {
		return err
	}
	defer release()
	return u.remove(id)
}

func (u *Uploads) remove(id string) error {
	for _, name := range []string{u.info(id), u.bytes(id)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("files: upload: %w", err)
		}
	}
	u.forget(id)
	return nil
}

func (u *Uploads) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byID, id)
}

// RemoveAll takes all uploads away of which gone says so, whoever writes to them. The error is ErrBusy where one did not stop.
func (u *Uploads) RemoveAll(ctx context.Context, match func(Upload) bool) error {
	var errs []error
	for _, entry := range u.selectUploads(match) {
		errs = append(errs, u.Remove(ctx, entry.ID))
	}
	return errors.Join(errs...)
}

func (u *Uploads) selectUploads(match func(Upload) bool) (matching []*upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, entry := range u.byID {
		if match(entry.Upload) {
			matching = append(matching, entry)
		}
	}
	return matching
}

// Sweep takes away what nothing was added to for longer than age, and what has been done for as long, but what somebody writes to.
func (u *Uploads) Sweep(age time.Duration) (n int, err error) {
	before := time.Now().Add(-age)
	for _, entry := range u.selectUploads(func(entry Upload) bool {
		for _, name := range []string{u.info(entry.ID), u.bytes(entry.ID)} {
			if info, err := os.Stat(name); err == nil && info.ModTime().After(before) {
				return false
			}
		}
		return true
	}) {
		select {
		case entry.slot <- struct{}{}:
			err = errors.Join(err, u.remove(entry.ID))
			n++
			<-entry.slot
		default:
		}
	}
	return n, err
}
