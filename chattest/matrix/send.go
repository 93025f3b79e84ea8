package matrix

import (
	"net/http"
	"strings"
	"time"
)

// maxEvent is the limit of an event, in bytes of its canonical JSON.
const maxEvent = 65536

// send adds an event to a room, unless the request repeats another.
func (c *call) send() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	if c.content == nil {
		return nil, refuse(http.StatusBadRequest, "M_NOT_JSON", "The request body is empty")
	}
	if _, failed := canonical(c.content); failed != nil {
		return nil, failed
	}
	return c.transact(func() (*event, *failure) {
		e := &event{kind: c.r.PathValue("type"), sender: c.s.opt.User, content: c.content, txn: c.r.PathValue("txn")}
		if failed := c.checkSize(o, e); failed != nil {
			return nil, failed
		}
		if failed := c.checkRelation(o, e); failed != nil {
			return nil, failed
		}
		if failed := c.pace(); failed != nil {
			return nil, failed
		}
		// The event is judged after everything that could refuse it, so a refused request is not also a violation.
		c.judge(o, e)
		delete(c.s.typing, o.id)
		return c.s.add(o, e), nil
	})
}

// transact carries out a request with a transaction id, unless that was done before: then the answer is the first one, whatever the
// request contains.
func (c *call) transact(run func() (*event, *failure)) (any, *failure) {
	key := c.device + " " + c.r.Method + " " + c.r.URL.Path
	if id, ok := c.s.transactions[key]; ok {
		return map[string]any{"event_id": id}, nil
	}
	e, failed := run()
	if failed != nil {
		return nil, failed
	}
	c.s.transactions[key] = e.id
	return map[string]any{"event_id": e.id}, nil
}

// checkSize refuses an event that is too large together with what the server adds: references to other events, hashes and a
// signature.
func (c *call) checkSize(o *room, e *event) *failure {
	reference, digest := "$"+strings.Repeat("e", 43), strings.Repeat("h", 43)
	raw, failed := canonical(map[string]any{
		"auth_events": []string{reference, reference, reference}, "prev_events": []string{reference}, "depth": len(o.events), "content": e.content,
		"hashes": map[string]any{"sha256": digest}, "origin_server_ts": c.at.UnixMilli(), "room_id": o.id, "sender": e.sender, "type": e.kind,
		"signatures": map[string]any{"matrix.test": map[string]any{"ed25519:auto": digest + digest}},
	})
	switch {
	case failed != nil:
		return failed
	case len(raw) <= maxEvent:
		return nil
	case c.s.opt.IsSynapse:
		return refuse(http.StatusRequestEntityTooLarge, "M_TOO_LARGE", "event too large")
	}
	const format = "gomatrixserverlib: event is too long, length %d bytes > maximum %d bytes"
	return refuse(http.StatusRequestEntityTooLarge, "M_BAD_JSON", format, len(raw), maxEvent)
}

// checkRelation refuses relations to events that don't exist, and threads that begin at an event with a relation.
func (c *call) checkRelation(o *room, e *event) *failure {
	r := relation(e.content)
	kind, id := text(r, "rel_type"), text(r, "event_id")
	if kind == "" {
		return nil
	}
	target := o.byID[id]
	if target == nil {
		return refuse(http.StatusBadRequest, "M_UNKNOWN", "Can't send relation to unknown event")
	}
	if kind == "m.thread" && text(relation(target.content), "rel_type") != "" {
		return refuse(http.StatusBadRequest, "M_UNKNOWN", "Cannot start threads from an event with a relation")
	}
	return nil
}

// judge records what servers accept, but clients ignore or people are disturbed by.
func (c *call) judge(o *room, e *event) {
	if e.kind != "m.room.message" {
		return
	}
	if text(e.content, "msgtype") == "" || strings.TrimSpace(text(e.content, "body")) == "" {
		c.s.violate("a message without msgtype or body")
	}
	if text(e.content, "formatted_body") != "" && text(e.content, "format") != "org.matrix.custom.html" {
		c.s.violate("a formatted_body without its format")
	}
	if !e.isEdit() {
		return
	}
	target := o.byID[text(relation(e.content), "event_id")]
	switch {
	case target.isEdit() || target.kind != e.kind || target.sender != e.sender:
		c.s.violate("an edit that is related to %s, which is not an original message of the bot", target.id)
		return
	case part(e.content, "m.new_content") == nil:
		c.s.violate("an edit without m.new_content")
		return
	}
	if m := part(e.content, "m.mentions"); m == nil || m["user_ids"] != nil || m["room"] != nil {
		c.s.violate("an edit that may mention people again: its m.mentions isn't empty")
	}
	if newest := o.newest(target); isLive(target) && !isLive(newest) {
		c.s.violate("an edit of message %s, which was finished", target.id)
	}
}

// newest returns the newest valid edit of a message, or the message.
func (o *room) newest(original *event) *event {
	newest := original
	for _, e := range o.events {
		if e.isEdit() && text(relation(e.content), "event_id") == original.id && e.sender == original.sender && part(e.content, "m.new_content") != nil {
			newest = e
		}
	}
	return newest
}

// isLive reports whether a message or an edit is marked as one that will be edited (MSC4357).
func isLive(e *event) bool {
	content := e.content
	if e.redaction != nil {
		content = e.original
	}
	return part(content, liveMarker) != nil
}

// liveMarker is the key of the content of a message that is being written.
const liveMarker = "org.matrix.msc4357.live"

// redact removes the content of an event. Its edits remain.
func (c *call) redact() (any, *failure) {
	o, e, failed := c.find()
	if failed != nil {
		return nil, failed
	}
	return c.transact(func() (*event, *failure) {
		if e.sender != c.s.opt.User {
			return nil, refuse(http.StatusForbidden, "M_FORBIDDEN", "You don't have permission to redact this event")
		}
		if failed := c.pace(); failed != nil {
			return nil, failed
		}
		return c.s.remove(o, e, c.s.opt.User), nil
	})
}

// remove redacts an event.
func (s *Server) remove(o *room, e *event, sender string) *event {
	r := s.add(o, &event{kind: "m.room.redaction", sender: sender, content: map[string]any{"redacts": e.id}})
	if e.redaction == nil {
		e.redaction, e.original, e.content = r, e.content, map[string]any{}
	}
	return r
}

// pace refuses a request that is faster than the rate limit, a token bucket.
func (c *call) pace() *failure {
	s := c.s
	if s.opt.Rate <= 0 {
		return nil
	}
	at := time.Now()
	s.level = min(float64(s.opt.Burst), s.level+at.Sub(s.filledAt).Seconds()*s.opt.Rate)
	s.filledAt = at
	if s.level < 1 {
		wait := time.Duration((1 - s.level) / s.opt.Rate * float64(time.Second))
		return tooMany(wait.Truncate(time.Millisecond) + time.Millisecond)
	}
	s.level--
	return nil
}
