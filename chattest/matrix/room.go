package matrix

import (
	"net/http"
	"time"
)

// join makes the bot a member of a room, if it is invited. To join again has no effect.
func (c *call) join() (any, *failure) {
	id, user := c.r.PathValue("room"), c.s.opt.User
	o := c.s.rooms[id]
	if o == nil {
		return nil, refuse(http.StatusNotFound, "M_NOT_FOUND", "Room %s does not exist", id)
	}
	switch o.membership(user) {
	case "join":
	case "invite":
		c.s.addState(o, user, "m.room.member", user, member("join", c.s.opt.Name))
	default:
		return nil, refuse(http.StatusForbidden, "M_FORBIDDEN", "You are not invited to this room.")
	}
	return map[string]any{"room_id": id}, nil
}

// leave ends the membership of the bot, or declines an invitation.
func (c *call) leave() (any, *failure) {
	o := c.s.rooms[c.r.PathValue("room")]
	if o == nil || o.membership(c.s.opt.User) == "" {
		return nil, refuse(http.StatusForbidden, "M_FORBIDDEN", "You are not a member of this room")
	}
	c.s.addState(o, c.s.opt.User, "m.room.member", c.s.opt.User, member("leave", ""))
	return map[string]any{}, nil
}

// member returns the content of a member event.
func member(membership, name string) map[string]any {
	content := map[string]any{"membership": membership}
	if name != "" {
		content["displayname"] = name
	}
	return content
}

// joinedMembers answers with the members of a room and their names.
func (c *call) joinedMembers() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	list := map[string]any{}
	for _, e := range o.with("join") {
		m := map[string]any{"display_name": nil}
		if name := text(e.content, "displayname"); name != "" {
			m["display_name"] = name
		}
		list[*e.stateKey] = m
	}
	return map[string]any{"joined": list}, nil
}

// members answers with the member events of a room, also those of people who were only invited or have left.
func (c *call) members() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	var list []*event
	for _, e := range o.state(1 << 62) {
		if want := c.r.FormValue("membership"); e.kind == "m.room.member" && (want == "" || want == text(e.content, "membership")) {
			list = append(list, e)
		}
	}
	return map[string]any{"chunk": c.s.objects(o, list)}, nil
}

// fullState answers with all state events of a room.
func (c *call) fullState() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	return c.s.objects(o, o.state(1<<62)), nil
}

// oneState answers with the content of one state event.
func (c *call) oneState() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	e := o.current(c.r.PathValue("type"), c.r.PathValue("key"))
	if e == nil {
		return nil, refuse(http.StatusNotFound, "M_NOT_FOUND", "Event not found.")
	}
	return e.content, nil
}

// setTyping shows or hides that the bot types. It is shown until a timeout, and a message hides it.
func (c *call) setTyping() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	delete(c.s.typing, o.id)
	if c.content["typing"] == true {
		limit, ok := c.content["timeout"].(interface{ Int64() (int64, error) })
		if !ok {
			return nil, refuse(http.StatusBadRequest, "M_BAD_JSON", "timeout is missing")
		}
		ms, err := limit.Int64()
		if err != nil || ms <= 0 {
			return nil, refuse(http.StatusBadRequest, "M_BAD_JSON", "timeout is invalid")
		}
		c.s.typing[o.id] = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return map[string]any{}, nil
}

// receipt marks an event as read.
func (c *call) receipt() (any, *failure) {
	o, e, failed := c.find()
	if failed != nil {
		return nil, failed
	}
	c.s.receipts[o.id] = e.id
	return map[string]any{}, nil
}

// readMarkers marks events as read, by the kind of the mark.
func (c *call) readMarkers() (any, *failure) {
	o, failed := c.joinedRoom()
	if failed != nil {
		return nil, failed
	}
	for _, key := range []string{"m.fully_read", "m.read", "m.read.private"} {
		id := text(c.content, key)
		if id == "" {
			continue
		}
		if o.byID[id] == nil {
			return nil, refuse(http.StatusNotFound, "M_NOT_FOUND", "Event not found.")
		}
		c.s.receipts[o.id] = id
	}
	return map[string]any{}, nil
}
