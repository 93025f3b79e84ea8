// Files that an imported history brings. They are stored before the commit, and removed if it doesn't happen.

package attachments

import (
	"context"
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
)

// historyFiles implements [gateway.HistoryFiles]: it stores the files of a conversation that an import or a backfill is about to create.
// A conversation that doesn't exist has no writer that could commit the records, so they are collected in keys, and the gateway writes
// them with the commit that creates the conversation. Only one goroutine may use it.
type historyFiles struct {
	store        *Store
	conversation string
	owner        quota.Account    // the conversation's owner, for whom the files count
	sizes        map[string]int64 // by id, so that a file that occurs twice counts once
	keys         []journal.KeyValue
}

// OfHistory implements [gateway.Attachments]. owner is passed because the conversation has no summary yet.
func (s *Store) OfHistory(conversation string, owner quota.Account) gateway.HistoryFiles {
	return &historyFiles{store: s, conversation: conversation, owner: owner, sizes: map[string]int64{}}
}

// Brings implements [gateway.MediaStore].
func (h *historyFiles) Brings(m *event.Media) bool { return h.store.brings(m) }

// Store implements [gateway.MediaStore]. Paths of the workspace are rejected: the history may come from another machine, where the same
// path named another file.
func (h *historyFiles) Store(_ context.Context, m event.Media) (event.Media, error) {
	if h.store.namesPath(m.URL) {
		return withoutPath(m), reject(gateway.ReasonFile, "files of the workspace are not taken over with a history")
	}
	f, r, err := openData(m)
	if err != nil {
		return withoutPath(m), reject(gateway.ReasonFile, "the file can't be read")
	}
	id, rec, err := h.store.write(h.conversation, f, r)
	if err != nil {
		return withoutPath(m), err
	}
	rec.Tenant, rec.Owner = h.owner.Tenant, h.owner.Subject
	v, err := json.Marshal(rec)
	if err != nil {
		return m, err
	}
	h.keys = append(h.keys, journal.KeyValue{Key: journalkey.File(h.conversation, id), Value: v})
	h.sizes[id] = rec.Size
	return h.store.media(h.conversation, id, &rec), nil
}

// Size implements [gateway.HistoryFiles].
func (h *historyFiles) Size() (sum int64) {
	for _, size := range h.sizes {
		sum += size
	}
	return sum
}

// Keys implements [gateway.HistoryFiles].
func (h *historyFiles) Keys() []journal.KeyValue { return h.keys }

// Committed implements [gateway.HistoryFiles]. The sizes are counted only now, because a file of a conversation that wasn't created must
// not use up its owner's quota.
func (h *historyFiles) Committed() {
	for id, size := range h.sizes {
		h.store.sizes.add(files.Folder(h.conversation), h.owner, id, size)
	}
}

// Discard implements [gateway.HistoryFiles]. Without stored files it leaves the folder alone.
func (h *historyFiles) Discard() error {
	if len(h.sizes) == 0 {
		return nil
	}
	return h.store.files.RemoveAll(h.conversation)
}
