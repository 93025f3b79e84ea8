package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Files keeps the bytes of files; [files.Dir] does.
type Files interface {
	Put(conversation string, r io.Reader, max int64) (files.Stored, error)
	Open(conversation, id string) (*os.File, error)
	Remove(conversation, id string) error
	RemoveAll(conversation string) error
	Sweep(age time.Duration, known func(folder, id string) bool, removed func(folder, id string)) error
}

const (
	// DefaultMaxFile fits what people send each other, and no film.
	DefaultMaxFile = 100 << 20
	// uploadLife is how long a file is kept that was brought in and is part of no message.
	uploadLife = 24 * time.Hour
	// sweepFiles is how often files are looked for that nobody knows any more, and sweepAge how old they are at least: no
	// upload takes that long.
	sweepFiles, sweepAge = time.Hour, 24 * time.Hour
)

// file is what is known of a file, beside its bytes. It is stored under fileKey.
type file struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime"`
	Alt  string `json:"alt,omitempty"`
	Size int64  `json:"size"`
	At   int64  `json:"at"` // epoch milliseconds
	// Path is the name in the workspace of what it was copied from, which may be there no more.
	Path string `json:"path,omitempty"`
	// Who is charged for it.
	Tenant string `json:"tenant,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

// PutFile stores a file that a person brings in, to be part of a message: the media that it returns. A file that is part of
// none goes after a day. The errors are those of Do.
func (g *Gateway) PutFile(ctx context.Context, p Principal, conversation string, f agent.File, r io.Reader) (event.Media, error) {
	w, err := g.writer(ctx, conversation)
	if err != nil {
		return event.Media{}, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionWrite, &s); err != nil {
		return event.Media{}, err
	}
	return w.putFile(ctx, p, f, r, uploadLife)
}

// putFile stores a file; life is how long it is kept that is part of no message, 0 as long as the conversation.
func (w *writer) putFile(ctx context.Context, p Principal, f agent.File, r io.Reader, life time.Duration) (event.Media, error) {
	if w.g.cfg.Files == nil {
		return event.Media{}, agent.ErrNoFiles
	}
	stored, err := w.g.cfg.Files.Put(w.id, r, w.g.cfg.MaxFile)
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return event.Media{}, reject(ReasonTooLarge, "the file has more than %d bytes", w.g.cfg.MaxFile)
	case errors.Is(err, files.ErrEmpty):
		return event.Media{}, reject(ReasonInvalid, "the file is empty")
	case err != nil:
		return event.Media{}, err
	}
	rec := file{Name: files.Name(f.Name), MIME: files.MIME(stored.Head, f.MIME), Alt: f.Alt, Size: stored.Size, At: now(), Path: f.Path}
	was := false
	err = w.submit(ctx, true, func(t *tx) error {
		if was, err = w.keepFile(ctx, t, p, stored.ID, &rec, life); err != nil {
			return err
		}
		if f.Origin != "" {
			t.set(journalkey.FileOrigin(w.id, f.Origin), []byte(stored.ID), expiry(life))
		}
		return nil
	})
	if err != nil {
		if !was && !errors.Is(err, journal.ErrUnknown) && ctx.Err() == nil { // else it may be known by now; a sweep finds it
			if rerr := w.g.cfg.Files.Remove(w.id, stored.ID); rerr != nil {
				w.log.Warn("file not removed", "file", stored.ID, "error", rerr)
			}
		}
		return event.Media{}, commandError(err)
	}
	return event.Media{URL: w.g.fileURL(w.id, stored.ID), MIME: rec.MIME, Name: rec.Name, Size: rec.Size, Alt: f.Alt}, nil
}

// keepFile writes down what is known of a file, and charges its bytes. was says that it was known before.
func (w *writer) keepFile(ctx context.Context, t *tx, p Principal, id string, rec *file, life time.Duration) (was bool, err error) {
	s := t.current()
	rec.Tenant, rec.Owner = s.Tenant, s.Owner
	key, until := journalkey.File(w.id, id), expiry(life)
	switch kv, err := w.g.journal.KeysAfter(ctx, key, "", 1); {
	case err != nil:
		return false, journalError("look up file", err)
	case len(kv) > 0 && kv[0].Key == key:
		if was = true; kv[0].Expires == 0 {
			until = 0 // it is part of a message
		}
	}
	if !was {
		if err := t.reserve(p, quota.Need{Bytes: rec.Size}); err != nil {
			return false, err
		}
		t.then(func() {
			w.g.stored.add(files.Folder(w.id), quota.Who{Tenant: rec.Tenant, Subject: rec.Owner}, id, rec.Size)
		})
	}
	v, err := json.Marshal(rec)
	if err != nil {
		return was, err
	}
	t.set(key, v, until)
	return was, nil
}

func expiry(life time.Duration) int64 {
	if life == 0 {
		return 0
	}
	return now() + life.Milliseconds()
}

// useFiles keeps the files that parts show for as long as the conversation.
func (w *writer) useFiles(ctx context.Context, t *tx, parts []event.Part) error {
	for _, id := range filesOf(parts, w.id) {
		v, err := w.g.journal.Get(ctx, journalkey.File(w.id, id))
		switch {
		case errors.Is(err, journal.ErrNotFound):
			return reject(ReasonUnknown, "there is no file %s in this conversation; files that are part of no message are kept for %v", id, uploadLife)
		case err != nil:
			return journalError("look up file", err)
		}
		t.set(journalkey.File(w.id, id), v, 0)
	}
	return nil
}

// dropFiles takes away files that no message shows any more.
func (w *writer) dropFiles(t *tx, ids []string) {
	for _, id := range ids {
		t.set(journalkey.File(w.id, id), nil, 0)
		t.then(func() {
			if err := w.g.cfg.Files.Remove(w.id, id); err != nil {
				w.log.Warn("file not removed; a later start does it", "file", id, "error", err)
			}
			w.g.stored.remove(files.Folder(w.id), id)
		})
	}
}

// OpenFile opens a file of a conversation to read, which the caller closes. Its errors are ErrNotFound, or those of reading.
func (g *Gateway) OpenFile(ctx context.Context, p Principal, conversation, id string) (*os.File, event.Media, error) {
	s, err := g.summary(ctx, conversation)
	if err != nil {
		return nil, event.Media{}, err
	}
	if err := Decide(p, ActionRead, &s); err != nil {
		return nil, event.Media{}, err
	}
	return g.openFile(ctx, conversation, id)
}

func (g *Gateway) openFile(ctx context.Context, conversation, id string) (*os.File, event.Media, error) {
	if g.cfg.Files == nil || !files.ValidID(id) {
		return nil, event.Media{}, ErrNotFound
	}
	v, err := g.journal.Get(ctx, journalkey.File(conversation, id))
	if err != nil {
		return nil, event.Media{}, journalError("look up file", err)
	}
	var rec file
	if err := json.Unmarshal(v, &rec); err != nil {
		return nil, event.Media{}, fmt.Errorf("gateway: file %s: %w", id, err)
	}
	f, err := g.cfg.Files.Open(conversation, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, event.Media{}, ErrNotFound // its bytes were not restored with the rest
	}
	if err != nil {
		return nil, event.Media{}, err
	}
	return f, event.Media{URL: g.fileURL(conversation, id), MIME: rec.MIME, Name: rec.Name, Size: rec.Size, Alt: rec.Alt}, nil
}

// cleanFiles finds out which files there are, and takes away those that nobody knows any more.
func (g *Gateway) cleanFiles(ctx context.Context, age time.Duration) error {
	if g.cfg.Files == nil {
		return nil
	}
	known := map[string]bool{}
	for after := ""; ; {
		const page = 1000
		keys, err := g.journal.KeysAfter(ctx, journalkey.FilePrefix, after, page)
		if err != nil {
			return fmt.Errorf("gateway: list files: %w", err)
		}
		for _, kv := range keys {
			after = kv.Key
			conversation, id := path.Split(strings.TrimPrefix(kv.Key, journalkey.FilePrefix))
			folder := files.Folder(strings.TrimSuffix(conversation, "/"))
			var rec file
			if err := json.Unmarshal(kv.Value, &rec); err != nil {
				return fmt.Errorf("gateway: file %s: %w", id, err)
			}
			known[folder+"/"+id] = true
			g.stored.add(folder, quota.Who{Tenant: rec.Tenant, Subject: rec.Owner}, id, rec.Size)
		}
		if len(keys) < page {
			break
		}
	}
	n := 0
	err := g.cfg.Files.Sweep(age, func(folder, id string) bool { return known[folder+"/"+id] }, func(folder, id string) {
		n++
		g.stored.remove(folder, id)
	})
	if n > 0 {
		g.log.Info("files removed that nobody knows any more", "files", n)
	}
	return errors.Join(err, g.cleanUploads())
}

// keepFilesClean runs until the gateway ends.
func (g *Gateway) keepFilesClean() {
	tick := time.NewTicker(sweepFiles)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-g.life.Done():
			return
		}
		if err := g.cleanFiles(g.life, sweepAge); err != nil && g.life.Err() == nil {
			g.log.Warn("look for files that nobody knows any more", "error", err)
		}
	}
}
