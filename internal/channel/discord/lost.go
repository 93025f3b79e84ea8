package discord

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// nonceLife is how long the platform certainly remembers a nonce. It says: a few minutes. Within that time the request is just
	// repeated, which costs less than a search.
	nonceLife = 2 * time.Minute
	// clockError is the largest difference between the clocks of the platform and of this program. It only bounds the search: a
	// message from before the request can't be the result of it.
	clockError = time.Minute
	// searchBack is how far the search of an interrupted delivery goes back if no message of it is known.
	searchBack = 24 * time.Hour
	// pageSize is how many messages one request returns, and maxPages how many requests a search makes.
	pageSize = 100
	maxPages = 10
)

// unanswered is a message whose creation got no answer. The body is needed to recognize the message, because the platform doesn't
// return the nonce of old messages.
type unanswered struct {
	at   time.Time // of the first request
	body outgoing
	// isGrowing means that another process has sent the request, with a text that isn't known: that of a running turn.
	isGrowing bool
}

// continueFrom makes a chat that of an interrupted delivery, of which state was stored. The first message that is created may exist. It
// is newer than the newest message that the delivery knew.
func (t *chat) continueFrom(state json.RawMessage) {
	var s struct {
		Newest  string `json:"newest"`
		ReplyTo string `json:"replyTo"`
	}
	_ = json.Unmarshal(state, &s) // the engine reports the error when it reads the state
	t.isInterrupted, t.newest, t.replyTo = true, numberOf(s.Newest), s.ReplyTo
}

// remember records a request without an answer.
func (t *chat) remember(key string, began time.Time, body outgoing) {
	if _, ok := t.unanswered[key]; !ok {
		t.unanswered[key] = unanswered{at: began, body: body}
	}
}

// find returns the id of a message whose creation got no answer so long ago that its nonce may be forgotten, or "". If it isn't
// there, it is certain that the first request took no effect, and the key is forgotten.
func (t *chat) find(ctx context.Context, key string, body outgoing, isGrowing bool) (string, error) {
	missing, ok := t.unanswered[key]
	after := numberAt(missing.at.Add(-clockError))
	switch {
	case t.isInterrupted:
		body.Reference = t.reference(t.replyTo)
		missing, after = unanswered{body: body, isGrowing: isGrowing}, numberAt(time.Now().Add(-searchBack))
	case !ok || time.Since(missing.at) < nonceLife:
		return "", nil
	}
	// The bot may send before its gateway connection has introduced it.
	id, err := t.c.ownID(ctx)
	if err != nil {
		return "", err
	}
	list, err := t.messagesAfter(ctx, max(after, t.newest))
	if err != nil {
		return "", err
	}
	t.isInterrupted = false
	delete(t.unanswered, key)
	for i := range list {
		if m := &list[i]; m.Author != nil && m.Author.ID == id && numberOf(m.ID) > t.newest && missing.isLike(m) {
			return m.ID, nil
		}
	}
	return "", nil
}

// messagesAfter returns the messages of the channel behind a number. The platform returns the first of them, each page with the newest
// message first.
func (t *chat) messagesAfter(ctx context.Context, number uint64) (list []message, err error) {
	for range maxPages {
		var page []message
		to := at(http.MethodGet, "/channels/%s/messages?limit=100&after=%s", t.id, strconv.FormatUint(number, 10))
		if err := t.c.client.call(ctx, to, nil, &page); err != nil {
			return nil, err
		}
		list = append(list, page...)
		if len(page) < pageSize {
			break
		}
		number = numberOf(page[0].ID)
	}
	return list, nil
}

// isLike reports whether a message of the bot can be the one that got no answer. A chat has one card at a time, whose content contains
// the time. A growing text is recognized as the reply to the same message, or by its cursor.
func (u unanswered) isLike(m *message) bool {
	if u.body.Reference != nil && m.Reference != nil && m.Reference.Message != u.body.Reference.Message {
		return false
	}
	isCard := m.Flags&flagComponents != 0
	switch {
	case u.body.Content == nil:
		return isCard
	case len(u.body.Attachments) > 0:
		return len(m.Attachments) == 1 && m.Attachments[0].Filename == u.body.Attachments[0].Filename
	case u.isGrowing:
		return !isCard && len(m.Attachments) == 0 && (u.body.Reference != nil && m.Reference != nil || strings.HasSuffix(m.Content, strings.TrimSpace(cursor)))
	}
	return !isCard && strings.TrimSpace(*u.body.Content) == m.Content
}

// ownID returns the id of the bot as a user.
func (c *bot) ownID(ctx context.Context) (string, error) {
	if a := c.account.Load(); a != nil {
		return a.userID, nil
	}
	var account user
	err := c.client.call(ctx, at(http.MethodGet, "/users/@me"), nil, &account)
	return account.ID, err
}

// nonceOf returns the nonce of a key. A nonce has at most 25 characters. The first 18 bytes of the hash are 24 characters, which is
// unique enough for messages of a few minutes.
func nonceOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// numberOf returns an id as a number, or 0. Newer ids are larger.
func numberOf(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64) // 0 if it is not a number
	return n
}

// epoch is the time from which ids count, in milliseconds since 1970: the beginning of 2015.
const epoch = 1420070400000

// numberAt returns the least id of a time, or 0 for one before the epoch.
func numberAt(t time.Time) uint64 { return uint64(max(0, t.UnixMilli()-epoch)) << 22 }

// timeOf returns when an id was made. The platform sends no time with an interaction, so it is taken from the id.
func timeOf(id string) time.Time { return time.UnixMilli(int64(numberOf(id)>>22) + epoch) }

// randomKey returns the key of a message that no other process repeats.
func randomKey() string { return rand.Text() }
