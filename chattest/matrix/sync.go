package matrix

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// maxSync is how long the server holds a sync at most.
const maxSync = time.Minute

// sync answers with what has changed since a position, or when something changes or the timeout is over.
func (s *Server) sync(w http.ResponseWriter, c *call) {
	ms, err := strconv.Atoi(c.r.FormValue("timeout"))
	if c.r.FormValue("timeout") != "" && (err != nil || ms < 0) {
		write(w, nil, refuse(http.StatusBadRequest, "M_INVALID_PARAM", "invalid timeout"))
		return
	}
	since := int64(0)
	if text := c.r.FormValue("since"); text != "" {
		n, ok := parseToken(text)
		s.mu.Lock()
		ok = ok && n <= s.position
		s.mu.Unlock()
		if !ok {
			write(w, nil, refuse(http.StatusBadRequest, "M_UNKNOWN", "invalid since: %q", text))
			return
		}
		since = n
	}
	s.mu.Lock()
	f, failed := s.parseFilter(c.r.FormValue("filter"))
	s.mu.Unlock()
	if failed != nil {
		write(w, nil, failed)
		return
	}
	limit := time.NewTimer(min(time.Duration(ms)*time.Millisecond, maxSync))
	defer limit.Stop()
	// The first sync of a client is answered at once, whatever its timeout is.
	isOver := ms == 0 || since == 0
	for {
		if failed := c.authenticate(false); failed != nil { // the token may be revoked meanwhile
			write(w, nil, failed)
			return
		}
		s.mu.Lock()
		fault := s.syncFault()
		answer, isEmpty := s.changes(since, f)
		changed := s.changed
		s.mu.Unlock()
		if fault != nil {
			if fault.Before || fault.After {
				panic(http.ErrAbortHandler)
			}
			write(w, nil, fault.failure())
			return
		}
		if !isEmpty || isOver {
			write(w, answer, nil)
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			isOver = true
		case <-c.r.Context().Done():
			return
		}
	}
}

// syncFault returns the first fault for syncs, which have to be named. mu must be locked.
func (s *Server) syncFault() *Fault {
	for i, f := range s.faults {
		if f.Route != "sync" {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			return nil
		}
		s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		return f
	}
	return nil
}

// changes returns the body of a sync. mu must be locked.
func (s *Server) changes(since int64, f filter) (answer map[string]any, isEmpty bool) {
	join, invite, leave := map[string]any{}, map[string]any{}, map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(s.rooms)) {
		o := s.rooms[id]
		membership := o.current("m.room.member", s.opt.User)
		if membership == nil {
			continue
		}
		switch state := text(membership.content, "membership"); {
		case state == "join":
			from := since
			if membership.position > since {
				from = 0 // a room that the bot has just joined is sent as a whole
			}
			if o.events[len(o.events)-1].position > from {
				join[id] = s.joinedRoom(o, from, f)
			}
		case membership.position <= since:
		case state == "invite":
			invite[id] = map[string]any{"invite_state": map[string]any{"events": s.stripped(o, membership)}}
		case since > 0:
			leave[id] = map[string]any{"timeline": map[string]any{"events": s.objects(o, []*event{membership}), "limited": false}}
		}
	}
	data := []any{}
	for _, kind := range slices.Sorted(maps.Keys(s.accountData)) {
		d := s.accountData[kind]
		if d.position > since && f.wantsData(kind) {
			data = append(data, map[string]any{"type": kind, "content": d.content})
		}
	}
	return map[string]any{
		"next_batch":   token(s.position),
		"rooms":        map[string]any{"join": join, "invite": invite, "leave": leave},
		"account_data": map[string]any{"events": data},
	}, len(join)+len(invite)+len(leave)+len(data) == 0
}

// joinedRoom returns the changes of a room. If there are more than the filter allows, the timeline is limited to the newest.
func (s *Server) joinedRoom(o *room, from int64, f filter) map[string]any {
	events := slices.DeleteFunc(slices.Clone(o.events), func(e *event) bool { return e.position <= from })
	isLimited := len(events) > f.Room.Timeline.Limit
	if isLimited {
		events = events[len(events)-f.Room.Timeline.Limit:]
	}
	state, begin := []*event{}, s.position
	if len(events) > 0 {
		begin = events[0].position - 1
	}
	for _, e := range o.state(begin) {
		if e.position > from {
			state = append(state, e)
		}
	}
	return map[string]any{
		"timeline": map[string]any{"events": s.objects(o, events), "limited": isLimited, "prev_batch": token(begin)},
		"state":    map[string]any{"events": s.objects(o, state)},
		"summary":  map[string]any{"m.joined_member_count": len(o.with("join")), "m.invited_member_count": len(o.with("invite"))},
	}
}

// stripped returns the state that an invited user may see.
func (s *Server) stripped(o *room, membership *event) []map[string]any {
	var list []map[string]any
	inviter := o.current("m.room.member", membership.sender)
	for _, e := range []*event{o.current("m.room.create", ""), o.current("m.room.encryption", ""), inviter, membership} {
		if e != nil {
			list = append(list, map[string]any{"type": e.kind, "sender": e.sender, "state_key": *e.stateKey, "content": e.content})
		}
	}
	return list
}
