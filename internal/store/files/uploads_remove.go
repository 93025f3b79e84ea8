package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Remove deletes an upload and stops its writer. A missing upload is not an error. The error is ErrBusy if the writer
// doesn't stop.
func (u *Uploads) Remove(ctx context.Context, id string) error {
	entry, err := u.find(id)
	if err != nil {
		return nil //nolint:nilerr // it doesn't exist
	}
	release, err := u.acquire(ctx, entry, nil)
	if err != nil {
		return err
	}
	defer release()
	return u.remove(id)
}

// remove deletes the files of an upload. The caller holds the upload's slot. The description goes first, because data without
// one is deleted by the next OpenUploads.
func (u *Uploads) remove(id string) error {
	for _, name := range []string{u.info(id), u.bytes(id)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("files: upload: %w", err)
		}
	}
	u.forget(id)
	return nil
}

// forget removes an upload from memory.
func (u *Uploads) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byID, id)
}

// RemoveAll deletes all uploads that match, and stops their writers. The error is ErrBusy if one of them doesn't stop.
func (u *Uploads) RemoveAll(ctx context.Context, match func(Upload) bool) error {
	var errs []error
	for _, entry := range u.selectUploads(match) {
		errs = append(errs, u.Remove(ctx, entry.ID))
	}
	return errors.Join(errs...)
}

// selectUploads returns the uploads that match. match is called with mu held, so it must not call the Uploads.
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

// Sweep deletes the uploads, finished or not, that weren't written to for longer than age. It skips those with an active
// writer. It returns the number of deleted uploads. It is called at intervals by the gateway.
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
