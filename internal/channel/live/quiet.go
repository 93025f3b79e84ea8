package live

import (
	"context"
	"time"
)

// idHidden is the id of a message that is not shown.
const idHidden = "hidden"

// quietChat hides what a running turn shows: the growing text is a draft that nobody sees, and the status card is not posted.
type quietChat struct{ FileChat }

var _ DraftChat = quietChat{}

// Quiet returns a chat in which nothing of a running turn is shown but its questions. The answer and its files are sent at the end, and
// an interrupted delivery continues as in other chats.
func Quiet(ch FileChat) FileChat { return quietChat{ch} }

// Post implements [Chat].
func (t quietChat) Post(ctx context.Context, p Post) (string, error) {
	if p.Kind == Card || p.IsLive {
		return idHidden, nil
	}
	return t.FileChat.Post(ctx, p)
}

// Edit implements [Chat].
func (t quietChat) Edit(ctx context.Context, id string, p Post) error {
	switch {
	case id != idHidden:
		return t.FileChat.Edit(ctx, id, p)
	case p.Kind == Card || p.IsLive:
		return nil
	}
	return ErrMissing // the answer can't take its place
}

// Delete implements [Chat].
func (t quietChat) Delete(ctx context.Context, id string) error {
	if id == idHidden {
		return nil
	}
	return t.FileChat.Delete(ctx, id)
}

// DraftTimes implements [DraftChat]. The draft is not shown, so it needs no updates.
func (quietChat) DraftTimes() (gap, life time.Duration) { return time.Hour, time.Hour }

// ShowDraft implements [DraftChat].
func (quietChat) ShowDraft(context.Context, Post) error { return nil }
