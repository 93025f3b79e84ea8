package audit

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/event"
)

// Conversation is the id of the audit log in the journal.
const Conversation = "$audit"

// Entry describes one operation that was carried out or refused.
type Entry struct {
	// Seq is the entry's position in the log, which assigns it. At is the time of the operation, epoch milliseconds. If At is
	// 0, the log sets it.
	Seq int64 `json:"seq,omitempty"`
	At  int64 `json:"at"`
	// Action is the type of a command or the name of an operation, such as "create", "purge" or "export".
	Action string `json:"action"`
	Actor  Actor  `json:"by"`
	// Conversation, Turn and Message are the ids of the operation's target. Tenant and Subject name the owner of the affected
	// data if the target isn't a conversation.
	Conversation string `json:"conversation,omitempty"`
	Turn         string `json:"turn,omitempty"`
	Message      string `json:"message,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	Subject      string `json:"subject,omitempty"`
	// Result is [Done] or the reason for the refusal. If it is empty, the log sets Done.
	Result string `json:"result,omitempty"`
	// Effect is the seq at which a command took effect in its conversation.
	Effect int64 `json:"effect,omitempty"`
	// Counts are the numbers of items that an operation processed, by kind.
	Counts map[string]int `json:"counts,omitempty"`
	// Digest identifies a purged subject without its name. See [Digest].
	Digest string `json:"digest,omitempty"`
	// Plugin is the name of a plugin that was installed or removed.
	Plugin string `json:"plugin,omitempty"`
	// Blanked means that the entry's data was removed. Only Seq, At, Action and perhaps Conversation remain.
	Blanked bool `json:"blanked,omitempty"`
}

// Actor identifies who performed an operation.
type Actor struct {
	// Admin means that an admin acted as such. Acting means that the holder of the API token acted on behalf of Subject.
	Admin   bool   `json:"admin,omitempty"`
	Acting  bool   `json:"acting,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Gateway names the component of the gateway that acted, such as "retention". It is empty for requests.
	Gateway string `json:"gateway,omitempty"`
	// From is the remote address of the request, or empty if it didn't arrive over a network.
	From string `json:"from,omitempty"`
}

// Done is the result of an operation that was carried out.
const Done = "done"

// lasting are the actions whose entries survive the delete of their conversation. They record the delete itself, which is what
// an operator looks for later.
var lasting = map[string]bool{"delete": true, "expire": true}

// event returns the entry as a record of the log. The record's Conversation field makes the journal blank it together with that
// conversation, so the lasting actions leave it empty.
func (e Entry) event() (event.Event, error) {
	e.Seq = 0
	data, err := json.Marshal(e)
	if err != nil {
		return event.Event{}, fmt.Errorf("audit: entry: %w", err)
	}
	b := &event.Body{RecordKind: e.Action, Data: data}
	if !lasting[e.Action] {
		b.Conversation = e.Conversation
	}
	return event.Event{At: e.At, Type: event.Record, Body: b}, nil
}

// entryOf decodes a record that event returned. A record without data was blanked and yields what remains of its entry.
func entryOf(ev *event.Event) (Entry, error) {
	b := ev.Get()
	if len(b.Data) == 0 || string(b.Data) == "null" {
		return Entry{Seq: ev.Seq, At: ev.At, Action: b.RecordKind, Conversation: b.Conversation, Blanked: true}, nil
	}
	var e Entry
	if err := json.Unmarshal(b.Data, &e); err != nil {
		return e, fmt.Errorf("audit: entry %d: %w", ev.Seq, err)
	}
	e.Seq = ev.Seq
	return e, nil
}

// concerns reports whether the subject is the actor of the entry or the owner of the affected data.
func (e *Entry) concerns(tenant, subject string) bool {
	return e.Actor.Subject == subject && e.Actor.Tenant == tenant || e.Subject == subject && e.Tenant == tenant
}
