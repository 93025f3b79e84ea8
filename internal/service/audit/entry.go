package audit

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/event"
)

// Conversation is the id of the log.
const Conversation = "$audit"

// Entry is one thing that was done, or refused.
type Entry struct {
	// Seq is the entry's place in the log, which gives it, and At when it happened, in epoch milliseconds.
	Seq int64 `json:"seq,omitempty"`
	At  int64 `json:"at"`
	// Action is the type of a command, or the name of an operation, such as "create", "purge" or "export".
	Action string `json:"action"`
	Actor  Actor  `json:"by"`
	// Conversation, Turn and Message are ids of what it was done to; Tenant and Subject name whose data it was done to,
	// where no conversation says it.
	Conversation string `json:"conversation,omitempty"`
	Turn         string `json:"turn,omitempty"`
	Message      string `json:"message,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	Subject      string `json:"subject,omitempty"`
	// Result is [Done], or why it was refused.
	Result string `json:"result,omitempty"`
	// Effect is the seq at which a command took effect in its conversation.
	Effect int64 `json:"effect,omitempty"`
	// Counts tell how much an operation did.
	Counts map[string]int `json:"counts,omitempty"`
	// Digest stands for a subject whose name is gone; see [Digest].
	Digest string `json:"digest,omitempty"`
	// Plugin names one that was installed or removed.
	Plugin string `json:"plugin,omitempty"`
	// Blanked says that the entry had more to say, which was deleted.
	Blanked bool `json:"blanked,omitempty"`
}

// By is who did it.
type Actor struct {
	// Admin is set where an admin did it as such; Acting where the holder of the API token did it for Subject.
	Admin   bool   `json:"admin,omitempty"`
	Acting  bool   `json:"acting,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Gateway names a part of the gateway itself, such as "retention".
	Gateway string `json:"gateway,omitempty"`
	// From is the address that the request came from, where it came over a network.
	From string `json:"from,omitempty"`
}

// Done is the result of what was carried out.
const Done = "done"

// lasting are the actions whose entries outlive their conversation: that it was deleted, and by whom, is what is asked later.
var lasting = map[string]bool{"delete": true, "expire": true}

// event returns the entry as the log has it. What a deleted conversation's id stands beside is blanked with it.
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

// entryOf reads what event wrote.
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

// concerns reports whether the subject did it, or it was done to the subject.
func (e *Entry) concerns(tenant, subject string) bool {
	return e.Actor.Subject == subject && e.Actor.Tenant == tenant || e.Subject == subject && e.Tenant == tenant
}
