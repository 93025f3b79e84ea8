package matrix

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// roomEvent is an event in a room, with the fields that are used.
type roomEvent struct {
	// ID is opaque. Its form depends on the version of the room.
	ID   string `json:"event_id"`
	Type string `json:"type"`
	// Sender is the whole id of a user, such as @ann:example.org.
	Sender string `json:"sender"`
	// StateKey is set for state events only. It may be empty.
	StateKey *string `json:"state_key"`
	Time     int64   `json:"origin_server_ts"` // milliseconds
	// Content depends on the type. It is an empty object after a redaction.
	Content  json.RawMessage `json:"content"`
	Unsigned struct {
		Redaction json.RawMessage `json:"redacted_because"`
		Previous  memberContent   `json:"prev_content"`
	} `json:"unsigned"`
}

// at returns when the event was sent, by the clock of its sender's homeserver.
func (e *roomEvent) at() time.Time { return time.UnixMilli(e.Time) }

// isRedacted reports whether the content of the event was removed.
func (e *roomEvent) isRedacted() bool { return len(e.Unsigned.Redaction) > 0 }

// memberContent is the content of a member event.
type memberContent struct {
	Membership string `json:"membership"`
	Name       string `json:"displayname"`
}

// member returns the content of a member event and its user, or false.
func (e *roomEvent) member() (m memberContent, user string, ok bool) {
	if e.Type != "m.room.member" || e.StateKey == nil {
		return m, "", false
	}
	return m, *e.StateKey, json.Unmarshal(e.Content, &m) == nil
}

// received is the content of a message of a person.
type received struct {
	// Kind is m.text, m.image and so on. Notices are those of bots and are ignored.
	Kind string `json:"msgtype"`
	// Body is plain text. For a file it is the caption, or the name of the file if Name is empty.
	Body string `json:"body"`
	Name string `json:"filename"`
	// URL is an mxc address on any homeserver; the bot's own one fetches it.
	URL  string   `json:"url"`
	Info fileInfo `json:"info"`
	// Relation has the zero value for a message outside of threads that answers no other.
	Relation relation `json:"m.relates_to"`
	// Mentions is nil for clients that are older than intentional mentions. Then only the text shows whether the bot is meant.
	Mentions *mentions `json:"m.mentions"`
}

// mentions are the users whom a message notifies, as its sender's client has recognized them.
type mentions struct {
	Users []string `json:"user_ids"`
}

// event returns an event of a room.
func (c *client) event(ctx context.Context, room, id string) (e roomEvent, err error) {
	err = c.call(ctx, requestLimit, http.MethodGet, path("client/v3/rooms/%s/event/%s", room, id), nil, &e)
	return e, err
}
