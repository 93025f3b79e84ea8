package attachments

import (
	"context"
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
)

// historyFiles implements [gateway.HistoryFiles]. It is used by one goroutine.
type historyFiles struct {
	store        *Store
	conversation string
	owner        quota.Account
	sizes        map[string]int64 // sizes by id
	keys         []journal.KeyValue
}

// OfHistory implements [gateway.Attachments].
func (s *Store) OfHistory(conversation string, owner quota.Account) gateway.HistoryFiles {
	return &historyFiles{store: s, conversation: conversation, owner: owner, sizes: map[string]int64{}}
}

// Brings implements [gateway.MediaStore].
func (h *historyFiles) Brings(m *event.Media) bool { return h.store.brings(m) }

// Store implements [gateway.MediaStore].
func (h *historyFiles) Store(_ context.Context, m event.Media) (event.Media, error) {
	if h.store.namesPath(m.URL) {
		return withoutPath(m), reject(gateway.ReasonFile, "files of the workspace are not taken over with a history")
	}
	mime, r, err := openData(m.URL)
	if err != nil {
		return withoutPath(m), reject(gateway.ReasonFile, "the file can't be read")
	}
	if m.MIME != "" {
		mime = m.MIME
	}
	id, rec, err := h.store.write(h.conversation, agent.File{Name: m.Name, MIME: mime, Alt: m.Alt}, r)
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

// Committed implements [gateway.HistoryFiles].
func (h *historyFiles) Committed() {
	for id, size := range h.sizes {
		h.store.sizes.add(files.Folder(h.conversation), h.owner, id, size)
	}
}

// Discard implements [gateway.HistoryFiles].
func (h *historyFiles) Discard() error {
	if len(h.sizes) == 0 {
		return nil
	}
	return h.store.files.RemoveAll(h.conversation)
}
