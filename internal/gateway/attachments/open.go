package attachments

// The files of a conversation are found by their id, which is a digest of the bytes, or by their origin. The record in the journal decides
// whether a file exists: bytes without a record are as good as deleted.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/files"
)

// open opens a file of a conversation and returns the media that describe it. The caller closes the file. If the id is malformed, or the
// record or the file is missing, the error is [gateway.ErrNotFound]. open doesn't check access.
func (s *Store) open(ctx context.Context, conversation, id string) (*os.File, event.Media, error) {
	if !files.ValidID(id) {
		return nil, event.Media{}, gateway.ErrNotFound
	}
	rec, err := s.lookUp(ctx, conversation, id)
	if err != nil {
		return nil, event.Media{}, err
	}
	f, err := s.files.Open(conversation, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, event.Media{}, gateway.ErrNotFound // a backup may have been restored without its files
	}
	if err != nil {
		return nil, event.Media{}, err
	}
	return f, s.media(conversation, id, &rec), nil
}

// lookUp returns the record of a file. If it doesn't exist or has expired, the error is [gateway.ErrNotFound].
func (s *Store) lookUp(ctx context.Context, conversation, id string) (rec record, err error) {
	v, err := s.journal.Get(ctx, journalkey.File(conversation, id))
	if err != nil {
		return rec, gateway.JournalError("look up file", err)
	}
	if err := json.Unmarshal(v, &rec); err != nil {
		return rec, fmt.Errorf("attachments: record of file %s: %w", id, err)
	}
	return rec, nil
}

// find returns the file that was stored in a conversation from an origin, such as a URL or a version of a workspace file, so that the
// same file isn't stored twice. ok is false if the origin is unknown or its file was removed.
func (s *Store) find(ctx context.Context, conversation, origin string) (m event.Media, ok bool, err error) {
	id, err := s.journal.Get(ctx, journalkey.FileOrigin(conversation, origin))
	if err != nil {
		err = gateway.JournalError("look up file", err)
	} else {
		var f *os.File
		if f, m, err = s.open(ctx, conversation, string(id)); err == nil {
			return m, true, f.Close()
		}
	}
	if errors.Is(err, gateway.ErrNotFound) {
		return event.Media{}, false, nil
	}
	return event.Media{}, false, err
}
