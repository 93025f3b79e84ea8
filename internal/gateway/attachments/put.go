package attachments

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// put stores a file in a conversation. life is how long a file is kept that becomes part of no message; if it is 0, it is kept as long
// as the conversation.
func (s *Store) putAs(ctx context.Context, c gateway.Updater, p gateway.Principal, f agent.File, r io.Reader, life time.Duration) (event.Media, error) {
	id, rec, err := s.write(c.ID(), f, r)
	if err != nil {
		return event.Media{}, err
	}
	isRecorded := false
	err = c.Update(ctx, func(t gateway.Tx) error {
		if isRecorded, err = s.addRecord(ctx, t, p, id, &rec, life); err != nil {
			return err
		}
		if f.Origin != "" {
			t.Set(journalkey.FileOrigin(c.ID(), f.Origin), []byte(id), expiry(life))
		}
		return nil
	})
	if err != nil {
		// If the record may have been written, the bytes stay. A sweep removes them if it was not.
		if !isRecorded && !errors.Is(err, journal.ErrUnknown) && ctx.Err() == nil {
			s.remove(c.ID(), id)
		}
		return event.Media{}, err
	}
	return s.media(c.ID(), id, &rec), nil
}

// write stores the bytes of a file, and returns its id and its record, without an account.
func (s *Store) write(conversation string, f agent.File, r io.Reader) (id string, rec record, err error) {
	info, err := s.files.Create(conversation, r, s.maxFile)
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return "", rec, s.tooLarge()
	case errors.Is(err, files.ErrEmpty):
		return "", rec, reject(gateway.ReasonInvalid, "the file is empty")
	case err != nil:
		return "", rec, err
	}
	return info.ID, record{
		Name: files.Name(f.Name), MIME: files.MIME(info.Head, f.MIME), Alt: f.Alt, Size: info.Size, At: time.Now().UnixMilli(), Path: f.Path,
	}, nil
}

func (s *Store) tooLarge() *gateway.Rejection {
	return reject(gateway.ReasonTooLarge, "the file has more than %d bytes", s.maxFile)
}

// addRecord adds the record of a stored file to a commit, and counts its bytes. isRecorded is true if the conversation had the file
// before: then it costs nothing.
func (s *Store) addRecord(ctx context.Context, t gateway.Tx, p gateway.Principal, id string, rec *record, life time.Duration) (isRecorded bool, err error) {
	summary := t.Summary()
	rec.Tenant, rec.Owner = summary.Tenant, summary.Owner
	key, expires := journalkey.File(t.Conversation(), id), expiry(life)
	switch entries, err := s.journal.KeysAfter(ctx, key, "", 1); {
	case err != nil:
		return false, gateway.JournalError("look up file", err)
	case len(entries) > 0 && entries[0].Key == key:
		if isRecorded = true; entries[0].Expires == 0 {
			expires = 0 // a message shows it
		}
	}
	if !isRecorded {
		if err := t.Reserve(p, quota.Need{Bytes: rec.Size}); err != nil {
			return false, err
		}
		folder, account, size := files.Folder(t.Conversation()), rec.account(), rec.Size
		t.AfterCommit(func() { s.sizes.add(folder, account, id, size) })
	}
	v, err := json.Marshal(rec)
	if err != nil {
		return isRecorded, err
	}
	t.Set(key, v, expires)
	return isRecorded, nil
}

// expiry returns when a key that lives that long expires, in epoch milliseconds; 0 if it doesn't.
func expiry(life time.Duration) int64 {
	if life == 0 {
		return 0
	}
	return time.Now().Add(life).UnixMilli()
}

func (s *Store) remove(conversation, id string) {
	if err := s.files.Remove(conversation, id); err != nil {
		s.log.Warn("file not removed; a sweep removes it", "conversation", conversation, "file", id, "error", err)
	}
}

// Retain implements [gateway.Attachments].
func (s *Store) Retain(ctx context.Context, t gateway.Tx, parts []event.Part) error {
	for _, id := range shownBy(parts, t.Conversation()) {
		key := journalkey.File(t.Conversation(), id)
		v, err := s.journal.Get(ctx, key)
		switch {
		case errors.Is(err, journal.ErrNotFound):
			return reject(gateway.ReasonUnknown, "there is no file %s in this conversation; files that are part of no message are kept for %v", id, lifetime)
		case err != nil:
			return gateway.JournalError("look up file", err)
		}
		t.Set(key, v, 0)
	}
	return nil
}

// Release implements [gateway.Attachments].
func (s *Store) Release(t gateway.Tx, deleted, remaining []*transcript.Message) {
	conversation := t.Conversation()
	for _, id := range shownOnlyBy(deleted, remaining, conversation) {
		t.Set(journalkey.File(conversation, id), nil, 0)
		t.AfterCommit(func() {
			s.remove(conversation, id)
			s.sizes.remove(files.Folder(conversation), id)
		})
	}
}

// shownBy returns the ids of the conversation's files that parts show, each once.
func shownBy(parts []event.Part, conversation string) (ids []string) {
	for _, p := range parts {
		if p.Media == nil {
			continue
		}
		if id := fileID(p.Media.URL, conversation); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// shownOnlyBy returns the ids of the conversation's files that the first messages show and the others don't.
func shownOnlyBy(messages, remaining []*transcript.Message, conversation string) (ids []string) {
	fileIDs := func(list []*transcript.Message) map[string]bool {
		ids := map[string]bool{}
		for _, m := range list {
			for _, p := range m.Parts {
				if p.Media != nil {
					ids[fileID(p.Media.URL, conversation)] = true
				}
			}
		}
		delete(ids, "")
		return ids
	}
	byOthers := fileIDs(remaining)
	for id := range fileIDs(messages) {
		if !byOthers[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
