package discord

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
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
)

// unanswered is a message whose creation got no answer. The body is needed to recognize the message, because the platform doesn't
// return the nonce of old messages.
type unanswered struct {
	at   time.Time // of the first request
	body outgoing
}

// remember records a request without an answer.
func (t *chat) remember(key string, began time.Time, body outgoing) {
	if _, ok := t.unanswered[key]; !ok {
		t.unanswered[key] = unanswered{began, body}
	}
}

// find returns the id of a message whose creation got no answer so long ago that its nonce may be forgotten, or "". If it isn't
// there, it is certain that the first request took no effect, and the key is forgotten.
func (t *chat) find(ctx context.Context, key string) (string, error) {
	missing, ok := t.unanswered[key]
	if !ok || time.Since(missing.at) < nonceLife {
		return "", nil
	}
	// The bot may send before its gateway connection has introduced it.
	id, err := t.c.ownID(ctx)
	if err != nil {
		return "", err
	}
	var list []message // the newest first
	if err := t.c.client.call(ctx, at(http.MethodGet, "/channels/%s/messages?limit=100", t.id), nil, &list); err != nil {
		return "", err
	}
	for i := range list {
		m := &list[i]
		if m.Author != nil && m.Author.ID == id && m.Timestamp.After(missing.at.Add(-clockError)) && missing.isLike(m) {
			return m.ID, nil
		}
	}
	delete(t.unanswered, key)
	return "", nil
}

// isLike reports whether a message of the bot can be the one that got no answer. A chat has one card at a time, whose content contains the
// time.
func (u unanswered) isLike(m *message) bool {
	switch {
	case u.body.Content == nil:
		return m.Flags&flagComponents != 0
	case len(u.body.Attachments) > 0:
		return len(m.Attachments) == 1 && m.Attachments[0].Filename == u.body.Attachments[0].Filename
	}
	return m.Flags&flagComponents == 0 && strings.TrimSpace(*u.body.Content) == m.Content
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

// randomKey returns the key of a message that no other process repeats.
func randomKey() string { return rand.Text() }
