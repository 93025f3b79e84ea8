package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxText is the limit of a message, in bytes of the JSON of an edit with it. The specification allows 65,536 bytes for an event,
	// of which the homeserver needs some for signatures and references.
	maxText = 60_000
	// maxCard limits the Markdown of a status card, in bytes. Its JSON has four times as many, or more.
	maxCard = 12_000
	// editGap is the least time between two messages or edits in a room, and slowGap that of live updates for slowFor after the
	// homeserver has refused one: Synapse's default is one event every 5 s. The proposal for live messages recommends an update every
	// two to three seconds.
	editGap = 2 * time.Second
	slowGap = 5 * time.Second
	slowFor = 10 * time.Minute
	// timeGap is the time between two edits of a card that change the elapsed time only. Each edit has to be redacted at the end.
	timeGap = 30 * time.Second
	// typingTimeout is how long a homeserver shows that the bot types, and typingLife when that is repeated.
	typingTimeout = 20 * time.Second
	typingLife    = 15 * time.Second
)

// rules are those of Matrix. An edit doesn't notify, but the first version of a message does, so the message becomes the answer.
var rules = live.Rules{
	Platform: "matrix", Format: markup.Matrix, MaxText: maxText, InPlace: true, Idempotent: true, TypingLife: typingLife, MaxFile: maxUpload,
}

// gatePlace returns where the requests to a room are counted.
func (p place) gatePlace() live.Place { return live.Place{ID: p.room, Gap: editGap} }

// chat is a room or a thread, for one delivery.
type chat struct {
	c  *bot
	at place
	// nonce makes the transaction ids of edits differ from those of other deliveries.
	nonce string
	// edits has the newest edit of each message of this delivery.
	edits map[string]*edit // by the id of the original event
	// isPlain is set when a message was refused as too large.
	isPlain bool
	// upload is the file that was uploaded last, whose message may have to be repeated.
	upload upload
}

var _ live.FileChat = (*chat)(nil)

// newChat returns the chat for a delivery of a turn or of a message.
func (c *bot) newChat(at place) *chat {
	return &chat{c: c, at: at, nonce: uuid.NewString(), edits: map[string]*edit{}}
}

// Post implements [live.Chat].
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	m := t.message(p)
	replyTo, err := t.replyTo(ctx, p.ReplyTo)
	if err != nil {
		return "", err
	}
	m.Relation = t.at.relation(replyTo)
	return t.send(ctx, p.Key, m)
}

// send sends a message. The key makes a repetition take no effect.
func (t *chat) send(ctx context.Context, key string, m content) (string, error) {
	if key == "" {
		key = uuid.NewString()
	}
	var answer struct {
		ID string `json:"event_id"`
	}
	err := t.call(ctx, http.MethodPut, t.sendPath(transaction(t.at.id(), key)), m, &answer)
	return answer.ID, err
}

// sendPath returns the path of the request that sends an event.
func (t *chat) sendPath(txn string) string {
	return path("client/v3/rooms/%s/send/m.room.message/%s", t.at.room, txn)
}

// Delete implements [live.Chat]. The redaction of a message leaves its edits, which contain its text, so they are redacted first. The
// order doesn't matter to a repetition, because a redacted edit has lost its relation.
func (t *chat) Delete(ctx context.Context, id string) error {
	for next := ""; ; {
		var page struct {
			Events []roomEvent `json:"chunk"`
			Next   string      `json:"next_batch"`
		}
		list := path("client/v1/rooms/%s/relations/%s/m.replace", t.at.room, id) + "?limit=100&from=" + url.QueryEscape(next)
		if next == "" {
			list = strings.TrimSuffix(list, "&from=")
		}
		if err := t.call(ctx, http.MethodGet, list, nil, &page); err != nil {
			return missing(dispensable(err))
		}
		for _, e := range page.Events {
			if e.isRedacted() {
				continue
			}
			if err := t.redact(ctx, e.ID); err != nil {
				return err
			}
		}
		if next = page.Next; next == "" {
			return t.redact(ctx, id)
		}
	}
}

// redact removes the content of an event.
func (t *chat) redact(ctx context.Context, id string) error {
	to := path("client/v3/rooms/%s/redact/%s/%s", t.at.room, id, transaction("redact", id))
	return missing(dispensable(t.call(ctx, http.MethodPut, to, struct{}{}, nil)))
}

// missing returns the error of a request about an event that may not exist.
func missing(err error) error {
	if code(err) == codeNotFound {
		return fmt.Errorf("%w: %w", live.ErrMissing, err)
	}
	return err
}

// ShowTyping implements [live.Chat].
func (t *chat) ShowTyping(ctx context.Context) error {
	a := t.c.account.Load()
	if a == nil {
		return nil
	}
	params := map[string]any{"typing": true, "timeout": typingTimeout.Milliseconds()}
	return dispensable(t.call(ctx, http.MethodPut, path("client/v3/rooms/%s/typing/%s", t.at.room, a.id), params, nil))
}

// replyTo returns the message that an answer replies to. In a room with one person it is clear what is answered.
func (t *chat) replyTo(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	if err := t.blocked(); err != nil {
		return "", err
	}
	people, err := t.c.rooms.of(ctx, t.at.room)
	if err != nil && !isFinal(err) {
		return "", t.explain(err)
	}
	if err != nil || !people.isGroup() {
		return "", nil
	}
	return id, nil
}

// call makes a request. During a penalty of the homeserver it makes none.
func (t *chat) call(ctx context.Context, method, path string, params, result any) error {
	if err := t.blocked(); err != nil {
		return err
	}
	return t.explain(t.c.client.call(ctx, requestLimit, method, path, params, result))
}

// blocked returns an error during a penalty of the homeserver.
func (t *chat) blocked() error {
	if wait := time.Until(time.Unix(0, t.c.limitedUntil.Load())); wait > 0 {
		return &live.Penalty{Wait: wait, IsGlobal: true, Err: errSlow}
	}
	return nil
}

// block makes the bot's chats send nothing until then. A longer penalty is not shortened by another.
func (c *bot) block(end time.Time) {
	for nanos := end.UnixNano(); ; {
		if old := c.limitedUntil.Load(); old >= nanos || c.limitedUntil.CompareAndSwap(old, nanos) {
			return
		}
	}
}

// transaction returns the transaction id of a request. It is the same for the same names.
func transaction(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return "leat-" + hex.EncodeToString(sum[:16])
}

// wantsQuiet reports whether the room wants no live messages (MSC4357). If that is unknown, the answer is sent as a whole. A room
// without the state event wants live messages.
func (t *chat) wantsQuiet(ctx context.Context) bool {
	var state struct {
		Enabled *bool `json:"enabled"`
	}
	for {
		err := t.call(ctx, http.MethodGet, path("client/v3/rooms/%s/state/org.matrix.msc4357.live_messaging", t.at.room), nil, &state)
		if p, ok := errors.AsType[*live.Penalty](err); ok && retry.Sleep(ctx, p.Wait) == nil {
			continue
		}
		return err != nil && code(err) != codeNotFound || state.Enabled != nil && !*state.Enabled
	}
}
