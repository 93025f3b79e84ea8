// Storing the bytes of a file and its record, and the references that keep it: a file without one expires.

package attachments

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
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

// putFile stores a file in a conversation: first its bytes, then a record in a commit of the conversation, which also reserves the quota. If
// the commit fails, the bytes are removed, unless the journal may have stored the record all the same.
func (s *Store) putFile(ctx context.Context, c conversation, f agent.File, r io.Reader) (event.Media, error) {
	id, rec, err := s.write(c.ID(), f, r)
	if err != nil {
		return event.Media{}, err
	}
	isRecorded := false
	err = c.Update(ctx, func(t gateway.Tx) (err error) {
		if isRecorded, err = s.addRecord(ctx, t, c, id, &rec); err != nil {
			return err
		}
		if f.Origin != "" {
			t.Set(journalkey.FileOrigin(c.ID(), f.Origin), []byte(id), expiry(c.life))
		}
		return nil
	})
	if err != nil {
		// If the record may have been written, the bytes stay. A sweep removes them if it was not. Once ctx has ended, the change may
		// still run, so isRecorded must not be read.
		if ctx.Err() == nil && !isRecorded && !errors.Is(err, journal.ErrUnknown) {
			s.remove(c.ID(), id)
		}
		return event.Media{}, err
	}
	return s.media(c.ID(), id, &rec), nil
}

// write stores the bytes of a file, and returns its id and its record. The caller sets the record's account. The MIME type is detected
// from the bytes; the declared type only decides between formats whose bytes look alike.
func (s *Store) write(conversation string, f agent.File, r io.Reader) (id string, rec record, err error) {
	info, err := s.files.Create(conversation, r, s.maxFile)
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return "", rec, s.tooLarge()
	case errors.Is(err, files.ErrEmpty):
		return "", rec, reject(gateway.ReasonInvalid, "the file is empty")
	case errors.Is(err, errNotBase64):
		return "", rec, reject(gateway.ReasonInvalid, "the data URL of the file is not valid base64")
	case err != nil:
		return "", rec, err
	}
	return info.ID, record{
		Name: files.Name(f.Name), MIME: files.MIME(info.Head, f.MIME), Alt: f.Alt, Size: info.Size, At: time.Now().UnixMilli(), Path: f.Path,
	}, nil
}

// tooLarge returns the refusal of a file that exceeds the limit.
func (s *Store) tooLarge() *gateway.Rejection {
	return reject(gateway.ReasonTooLarge, "the file has more than %d bytes", s.maxFile)
}

// addRecord adds the record of a stored file to a commit, and reserves quota for its bytes. isRecorded is true if the conversation already
// had a file with these bytes. Then no quota is needed, and a permanent record stays permanent. The account is that of the
// conversation's owner, even if a guest stores the file.
func (s *Store) addRecord(ctx context.Context, t gateway.Tx, c conversation, id string, rec *record) (isRecorded bool, err error) {
	summary := t.Summary()
	rec.Tenant, rec.Owner = summary.Tenant, summary.Owner
	key, expires := journalkey.File(t.Conversation(), id), expiry(c.life)
	switch entries, err := s.journal.KeysAfter(ctx, key, "", 1); {
	case err != nil:
		return false, gateway.JournalError("look up file", err)
	case len(entries) > 0 && entries[0].Key == key:
		if isRecorded = true; entries[0].Expires == 0 {
			expires = 0 // a message shows it
		}
	}
	if !isRecorded {
		if err := t.Reserve(c.principal, quota.Need{Bytes: rec.Size}); err != nil {
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

// expiry returns the time at which a key with that lifetime expires, in epoch milliseconds. It returns 0, which means never, for 0.
func expiry(life time.Duration) int64 {
	if life == 0 {
		return 0
	}
	return time.Now().Add(life).UnixMilli()
}

// remove deletes the bytes of a file without a record. An error is only logged, because the next sweep deletes them too.
func (s *Store) remove(conversation, id string) {
	if err := s.files.Remove(conversation, id); err != nil {
		s.log.Warn("file not removed; a sweep removes it", "conversation", conversation, "file", id, "error", err)
	}
}

// Retain implements [gateway.Attachments]. It writes the records again without an expiry, in the commit of the message that shows the
// files, so the files become permanent if and only if the message does.
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

// Release implements [gateway.Attachments]. The records are deleted in the commit and the bytes after it, so that a crash in between
// leaves bytes without a record, which the next start removes.
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

// Detach implements [gateway.Attachments]. The records get an expiry, as those of files that no message has shown yet.
func (s *Store) Detach(ctx context.Context, t gateway.Tx, deleted, remaining []*transcript.Message) error {
	for _, id := range shownOnlyBy(deleted, remaining, t.Conversation()) {
		key := journalkey.File(t.Conversation(), id)
		switch v, err := s.journal.Get(ctx, key); {
		case errors.Is(err, journal.ErrNotFound): // removed by an operator
		case err != nil:
			return gateway.JournalError("look up file", err)
		default:
			t.Set(key, v, expiry(lifetime))
		}
	}
	return nil
}

// shownBy returns the ids of the conversation's files that parts show, each once. Media with other URLs, such as files of other
// conversations, are left out: they are neither kept nor removed with this conversation.
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

// shownOnlyBy returns the sorted ids of the conversation's files that messages show and remaining don't.
func shownOnlyBy(messages, remaining []*transcript.Message, conversation string) []string {
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
	deletable := fileIDs(messages)
	for id := range fileIDs(remaining) {
		delete(deletable, id)
	}
	return slices.Sorted(maps.Keys(deletable))
}
