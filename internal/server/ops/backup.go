package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// backuper writes a consistent copy of a store to a new file while the store is in use. Journals implement it.
type backuper interface {
	Backup(ctx context.Context, path string) error
}

// copies is the prefix of the temporary folders for backups.
const copies = "backup-"

// errBusy reports that another backup is running.
var errBusy = &server.Error{Status: http.StatusTooManyRequests, Reason: server.ReasonBusy, Message: "another backup is in progress; try again when it has ended", RetryAfter: retryBackup}

// retryBackup is the retry delay if another backup is running. A small store takes less.
const retryBackup = 10 * time.Second

// RegisterBackup adds POST /api/backup, with which the admin gets a copy of the whole store. The copy is created in a temporary
// folder in dir, so the disk needs room for it, and is deleted after it was sent. Only one backup runs at a time, so that
// repeated requests can't fill the disk. RegisterBackup deletes copies that a killed process has left, because they may contain
// data that was deleted later.
func RegisterBackup(s *server.Server, b backuper, dir string) error {
	leftovers, err := filepath.Glob(filepath.Join(dir, copies+"*"))
	if err != nil {
		return fmt.Errorf("look for old copies: %w", err)
	}
	for _, path := range leftovers {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove old copy: %w", err)
		}
	}
	var busy atomic.Bool
	s.Handle(server.Route{
		Method: http.MethodPost, Pattern: "/api/backup", Access: server.Admin, Stream: true,
		Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
			if !busy.CompareAndSwap(false, true) {
				return errBusy
			}
			defer busy.Store(false)
			return backup(s, w, r, b, dir)
		},
	})
	return nil
}

// The copy is complete on the disk before the status is sent, so a failure to copy is an ordinary error
// with a status. A store that can't be copied, such as the one in memory, gets 501. The folder is removed
// in any case.
func backup(s *server.Server, w http.ResponseWriter, r *http.Request, b backuper, dir string) (err error) {
	tmp, err := os.MkdirTemp(dir, copies)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	path := filepath.Join(tmp, "leat.db")
	if err := b.Backup(r.Context(), path); errors.Is(err, errors.ErrUnsupported) {
		return server.Errorf(http.StatusNotImplemented, server.ReasonInvalid, "this gateway's store can't be copied")
	} else if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer f.Close()
	w.Header().Set("Content-Disposition", `attachment; filename="leat.db"`)
	st, err := s.OpenStream(w, r, http.StatusOK, "application/vnd.sqlite3")
	if err != nil {
		return err
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if err := st.Write(buf[:n]); err != nil {
				return nil // the client disconnected
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil || r.Context().Err() != nil:
			// A partial copy must not look complete.
			s.Log().Error("backup cut", "error", errors.Join(err, context.Cause(r.Context())))
			panic(http.ErrAbortHandler)
		}
	}
}
