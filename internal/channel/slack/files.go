package slack

import (
	"context"
	"strconv"

	"github.com/leat-dev/leat/internal/channel/live"
)

// SendFile implements [live.FileChat]. A file appears in the chat when its upload is completed. The upload has three steps. The first
// two can be repeated without a visible effect; only the last one makes the file appear.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	if t.isNeeded || t.doubts[f.Key] {
		if err := t.searchChat(ctx, ""); err != nil {
			return "", t.undecided(err)
		}
		if id := t.takeFile(f.Name, int64(len(f.Content))); id != "" {
			t.knowFile(id)
			return t.at.channel + "/" + id, nil
		}
	}
	var place struct {
		Address string `json:"upload_url"`
		ID      string `json:"file_id"`
	}
	form := params{"filename": f.Name, "length": strconv.Itoa(len(f.Content))}
	if err := t.c.client.call(ctx, "files.getUploadURLExternal", form, &place); err != nil {
		return "", explain(withoutEffect(err))
	}
	if err := t.c.client.upload(ctx, place.Address, f.Content); err != nil {
		return "", err
	}
	form = params{"channel_id": t.at.channel}.with("files", []map[string]string{{"id": place.ID, "title": f.Name}})
	if t.at.thread != "" {
		form["thread_ts"] = t.at.thread
	}
	if err := t.c.client.call(ctx, methodComplete, form, nil); err != nil {
		return "", explain(t.doubt(f.Key, err))
	}
	t.knowFile(place.ID)
	return t.at.channel + "/" + place.ID, nil
}

// withoutEffect returns the error of a request that can be repeated, because its effect is not visible. An address that isn't used
// expires.
func withoutEffect(err error) error {
	if isUnknown(err) {
		return unsent("files.getUploadURLExternal", err)
	}
	return err
}
