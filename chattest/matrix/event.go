package matrix

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// event is an event in a room. A state event has a state key, which may be empty.
type event struct {
	// The kind is the type of the API, such as m.room.message.
	id, kind, sender string
	// stateKey is nil for messages.
	stateKey *string
	content  map[string]any
	at       time.Time
	// position orders events and account data of all rooms.
	position int64
	// txn is the transaction id, by which a bot recognizes its event in a sync.
	txn       string
	redaction *event         // that removed its content
	original  map[string]any // content before the redaction
	previous  map[string]any // content of the state event that it replaces
}

// room is a room. Its current state is in the events with a state key.
type room struct {
	// The id has no meaning for a bot.
	id     string
	events []*event // in order
	byID   map[string]*event
}

// add adds an event to a room. mu must be locked.
func (s *Server) add(o *room, e *event) *event {
	e.id, e.at, e.position = s.newID("$event"), time.Now(), s.next()
	o.events = append(o.events, e)
	o.byID[e.id] = e
	s.wake()
	return e
}

// addState adds a state event. mu must be locked.
func (s *Server) addState(o *room, sender, kind, key string, content map[string]any) *event {
	e := &event{kind: kind, sender: sender, stateKey: &key, content: content}
	if p := o.current(kind, key); p != nil {
		e.previous = p.content
	}
	return s.add(o, e)
}

// object returns an event as the API does.
func (s *Server) object(o *room, e *event) map[string]any {
	unsigned := map[string]any{"age": time.Since(e.at).Milliseconds()}
	object := map[string]any{
		"event_id": e.id, "type": e.kind, "sender": e.sender, "room_id": o.id, "origin_server_ts": e.at.UnixMilli(),
		"content": e.content, "unsigned": unsigned,
	}
	if e.stateKey != nil {
		object["state_key"] = *e.stateKey
		if e.previous != nil {
			unsigned["prev_content"] = e.previous
		}
	}
	if e.txn != "" {
		unsigned["transaction_id"] = e.txn
	}
	if e.redaction != nil {
		unsigned["redacted_because"] = s.object(o, e.redaction)
	}
	return object
}

// objects returns events as the API does.
func (s *Server) objects(o *room, events []*event) []map[string]any {
	list := make([]map[string]any, len(events))
	for i, e := range events {
		list[i] = s.object(o, e)
	}
	return list
}

// state returns the state of a room after the events up to a position.
func (o *room) state(to int64) []*event {
	var list []*event
	for _, e := range o.events {
		if e.position > to || e.stateKey == nil {
			continue
		}
		i := slices.IndexFunc(list, func(p *event) bool { return p.kind == e.kind && *p.stateKey == *e.stateKey })
		if i < 0 {
			list = append(list, e)
		} else {
			list[i] = e
		}
	}
	return list
}

// current returns a state event, or nil.
func (o *room) current(kind, key string) *event {
	for _, e := range slices.Backward(o.events) {
		if e.kind == kind && e.stateKey != nil && *e.stateKey == key {
			return e
		}
	}
	return nil
}

// membership returns the membership of a user: join, invite, leave, ban or "".
func (o *room) membership(user string) string {
	if e := o.current("m.room.member", user); e != nil {
		return text(e.content, "membership")
	}
	return ""
}

// with returns the newest member events with a membership.
func (o *room) with(membership string) []*event {
	return slices.DeleteFunc(o.state(1<<62), func(e *event) bool { return e.kind != "m.room.member" || text(e.content, "membership") != membership })
}

// text returns a string in an object, or "".
func text(content map[string]any, key string) string {
	v, _ := content[key].(string)
	return v
}

// part returns an object in an object, or nil.
func part(content map[string]any, key string) map[string]any {
	v, _ := content[key].(map[string]any)
	return v
}

// relation returns how an event is related to another, or nil.
func relation(content map[string]any) map[string]any { return part(content, "m.relates_to") }

// isEdit reports whether an event replaces the content of another.
func (e *event) isEdit() bool { return text(relation(e.content), "rel_type") == "m.replace" }

// joinedRoom returns the room of a request, of which the bot has to be a member.
func (c *call) joinedRoom() (*room, *failure) {
	id := c.r.PathValue("room")
	o := c.s.rooms[id]
	if o == nil || o.membership(c.s.opt.User) != "join" {
		return nil, refuse(http.StatusForbidden, "M_FORBIDDEN", "User %s not in room %s", c.s.opt.User, id)
	}
	return o, nil
}

// find returns the room and the event of a request.
func (c *call) find() (*room, *event, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, nil, failed
	}
	e := o.byID[c.r.PathValue("event")]
	if e == nil {
		return nil, nil, refuse(http.StatusNotFound, "M_NOT_FOUND", "Event not found.")
	}
	return o, e, nil
}

// oneEvent answers with one event. As with Dendrite, an edited message has its first content there.
func (c *call) oneEvent() (any, *failure) {
	o, e, failed := c.find()
	if failed != nil {
		return nil, failed
	}
	return c.s.object(o, e), nil
}

// relations lists the events that are related to an event, newest first. A redacted event has lost its relation.
func (c *call) relations() (any, *failure) {
	o, e, failed := c.find()
	if failed != nil {
		return nil, failed
	}
	relationType, eventType := c.r.PathValue("relation"), c.r.PathValue("type")
	isRelated := func(p *event) bool {
		r := relation(p.content)
		return text(r, "event_id") == e.id && (relationType == "" || text(r, "rel_type") == relationType) && (eventType == "" || p.kind == eventType)
	}
	return c.page(o, isRelated)
}

// messages lists the events of a room.
func (c *call) messages() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	if dir := c.r.FormValue("dir"); dir != "b" && dir != "f" {
		return nil, refuse(http.StatusBadRequest, "M_MISSING_PARAM", "Bad or missing dir query parameter (should be either 'b' or 'f')")
	}
	return c.page(o, func(*event) bool { return true })
}

// page answers a request for events: forward if dir is f, and otherwise backward.
func (c *call) page(o *room, isIncluded func(*event) bool) (any, *failure) {
	limit := 10
	if n, err := strconv.Atoi(c.r.FormValue("limit")); err == nil && n > 0 {
		limit = min(n, 1000)
	}
	isForward := c.r.FormValue("dir") == "f"
	from, to := c.s.position, int64(-1)
	if isForward {
		from, to = 0, 1<<62
	}
	for name, position := range map[string]*int64{"from": &from, "to": &to} {
		if token := c.r.FormValue(name); token != "" {
			n, ok := parseToken(token)
			if !ok {
				return nil, refuse(http.StatusBadRequest, "M_INVALID_PARAM", "Invalid %s parameter: %q", name, token)
			}
			*position = n
		}
	}
	var list []*event
	for _, e := range o.events {
		if isIncluded(e) && (isForward && e.position > from && e.position <= to || !isForward && e.position <= from && e.position > to) {
			list = append(list, e)
		}
	}
	// Backward, the position of the oldest event belongs to this page, so the next one begins before it.
	if !isForward {
		slices.Reverse(list)
	}
	answer := map[string]any{"start": token(from), "chunk": []any{}}
	if len(list) > limit {
		list = list[:limit]
		end := list[limit-1].position
		if !isForward {
			end--
		}
		answer["end"], answer["next_batch"] = token(end), token(end)
	}
	answer["chunk"] = c.s.objects(o, list)
	return answer, nil
}

// token returns a position in the stream of changes as the API does, and parseToken reads it.
func token(position int64) string { return "s" + strconv.FormatInt(position, 10) }

// parseToken reads a position that token has written. It returns false for a token of another server.
func parseToken(token string) (int64, bool) {
	if len(token) < 2 || token[0] != 's' {
		return 0, false
	}
	n, err := strconv.ParseInt(token[1:], 10, 64)
	return n, err == nil
}
