package matrix

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// maxRooms is how many rooms are remembered. Beyond it all are forgotten and loaded again when they are needed.
const maxRooms = 1000

// rooms remembers the members of rooms. Its methods may be called concurrently.
type rooms struct {
	client *client

	mu sync.Mutex
	// byID has the rooms whose changes were followed without a gap.
	byID map[string]members
	// changes counts the calls of update and forget. Members that were loaded during one of them may be out of date.
	changes int
}

// members are the displaynames of the members of a room by their ids. A map is never changed once it is made.
type members map[string]string

// isGroup reports whether several people may write in the room. With two members everything is meant for the bot, which is one of
// them.
func (m members) isGroup() bool { return len(m) > 2 }

// nameOf returns the name of a member. If the member has none, it is the local part of the id.
func (m members) nameOf(user string) string { return cmp.Or(m[user], localpart(user)) }

// localpart returns the part of a user's id before the server.
func localpart(user string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(user, "@"), ":")
	return name
}

// of returns the members of a room. A request is made without the lock, so two callers may load the same room. A change that arrives
// meanwhile isn't missed, because then the result is not remembered.
func (r *rooms) of(ctx context.Context, room string) (members, error) {
	r.mu.Lock()
	m, changes := r.byID[room], r.changes
	r.mu.Unlock()
	if m != nil {
		return m, nil
	}
	var answer struct {
		Members map[string]struct {
			Name string `json:"display_name"`
		} `json:"joined"`
	}
	if err := r.client.call(ctx, requestLimit, http.MethodGet, path("client/v3/rooms/%s/joined_members", room), nil, &answer); err != nil {
		return nil, err
	}
	m = members{}
	for user, o := range answer.Members {
		m[user] = o.Name
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes != changes {
		return m, nil
	}
	if r.byID == nil || len(r.byID) >= maxRooms {
		r.byID = map[string]members{}
	}
	r.byID[room] = m
	return m, nil
}

// update changes a member of a room that is remembered. Readers may still have the old map, so it is copied.
func (r *rooms) update(room, user string, m memberContent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	if r.byID[room] == nil {
		return
	}
	changed := maps.Clone(r.byID[room])
	if delete(changed, user); m.Membership == "join" {
		changed[user] = m.Name
	}
	r.byID[room] = changed
}

// forget makes the next call of of load the members of a room: changes of them were missed.
func (r *rooms) forget(room string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	delete(r.byID, room)
}
