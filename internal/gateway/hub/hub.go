package hub

import (
	"context"
	"errors"
	"sync"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// maxFrames and maxBytes bound the ring. They are enough for a few seconds of a terminal's output at full speed.
	maxFrames = 1024
	maxBytes  = 4 << 20
)

// Frame is one message to sockets. The fields before Key select the receivers: a frame with a Conversation goes to its readers,
// and one without goes to admins, unless Broadcast, Private or Deleted is set.
type Frame struct {
	// Conversation limits the frame to users who may read it. If it is empty, only admins get the frame.
	Conversation string
	// Deleted is the last summary of a deleted conversation. If it is set, users who could read that conversation get the frame.
	Deleted *journal.Summary
	// Broadcast sends a frame without a conversation to all sockets.
	Broadcast bool
	// Private limits the frame to the subject Subject of Tenant. Both are empty for the admin.
	Private         bool
	Tenant, Subject string
	// Client limits the frame to sockets that connected with that clientId. If it is empty, the frame goes to all sockets of its receivers.
	Client string
	// Key names the state that the frame reports, such as "title/" and an id: a later frame with that key replaces it. If it is
	// empty, every frame is delivered.
	Key string
	// JSON is the frame, on one line. It is not copied, so the caller must not change it.
	JSON []byte
}

// reader checks access to a conversation. [gateway.Gateway] implements it.
type reader interface {
	Conversation(ctx context.Context, p gateway.Principal, action gateway.Action, id string) (journal.Summary, error)
}

// Hub is a ring of frames. The methods may be called from several goroutines.
type Hub struct {
	gateway reader

	mu            sync.Mutex
	frames        []Frame
	firstPosition int64                    // position of frames[0], counted from the hub's start
	bytes         int                      // sum of len(JSON) over frames
	newest        map[string]int64         // position of the newest frame of each key in the ring
	changed       chan struct{}            // closed and replaced by Send
	active        map[*Cursor]activeClient // sockets that show a conversation
	looks         int64                    // number of SetActive calls, which orders active
}

// New returns a hub without frames.
func New(gw reader) *Hub {
	return &Hub{gateway: gw, newest: map[string]int64{}, active: map[*Cursor]activeClient{}, changed: make(chan struct{})}
}

// Send adds a frame to the ring and wakes all sockets. It never blocks. If the ring is full, it drops the oldest frames.
func (h *Hub) Send(f Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.firstPosition + int64(len(h.frames))
	h.frames = append(h.frames, f)
	h.bytes += len(f.JSON)
	if f.Key != "" {
		h.newest[f.Key] = at
	}
	n := 0
	for ; len(h.frames)-n > maxFrames || h.bytes > maxBytes && len(h.frames)-n > 1; n++ {
		old := &h.frames[n]
		h.bytes -= len(old.JSON)
		if old.Key != "" && h.newest[old.Key] == h.firstPosition+int64(n) {
			delete(h.newest, old.Key)
		}
		*old = Frame{} // release the JSON now: the backing array lives until append replaces it
	}
	h.frames = h.frames[n:]
	h.firstPosition += int64(n)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Changed returns a channel that is closed when the next frame is sent.
func (h *Hub) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Cursor is a socket's position in the ring. Only one goroutine may use it.
type Cursor struct {
	h  *Hub
	at int64
}

// Join returns a cursor at the end of the ring: it sees only frames that are sent later.
func (h *Hub) Join() *Cursor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Cursor{h: h, at: h.firstPosition + int64(len(h.frames))}
}

// Next returns the JSON of the next frame that p may see on a socket with the clientId client. json is nil until the next
// frame is sent. skipped counts the frames that the ring dropped before the cursor reached them, including frames that p could not have
// seen.
func (c *Cursor) Next(ctx context.Context, p gateway.Principal, client string) (json []byte, skipped int64, err error) {
	for {
		f, m, ok := c.step()
		skipped += m
		if !ok {
			return nil, skipped, nil
		}
		may, err := c.h.may(ctx, &f, p, client)
		if err != nil {
			return nil, skipped, err
		}
		if may {
			return f.JSON, skipped, nil
		}
	}
}

// step advances the cursor by one frame, and skips frames whose key has a newer frame.
func (c *Cursor) step() (f Frame, skipped int64, ok bool) {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.at < h.firstPosition {
		skipped = h.firstPosition - c.at
		c.at = h.firstPosition
	}
	for c.at < h.firstPosition+int64(len(h.frames)) {
		f = h.frames[c.at-h.firstPosition]
		c.at++
		if f.Key == "" || h.newest[f.Key] == c.at-1 {
			return f, skipped, true
		}
	}
	return Frame{}, skipped, false
}

// may reports whether p may see a frame. If p has no access to the conversation, may returns false without an error.
func (h *Hub) may(ctx context.Context, f *Frame, p gateway.Principal, client string) (bool, error) {
	switch {
	case f.Client != "" && f.Client != client, f.Private && (f.Tenant != p.Tenant || f.Subject != p.Subject):
		return false, nil
	case f.Deleted != nil:
		return gateway.Decide(p, gateway.ActionRead, f.Deleted) == nil, nil
	case f.Conversation != "":
		_, err := h.gateway.Conversation(ctx, p, gateway.ActionRead, f.Conversation)
		if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrForbidden) {
			return false, nil
		}
		return err == nil, err
	}
	return f.Broadcast || f.Private || p.Admin, nil
}

// activeClient is the conversation that one socket shows to its user.
type activeClient struct {
	tenant, subject string
	conversation    string
	turn            int64 // order of the SetActive calls; the highest is the latest
}

// SetActive records the conversation that the user of a socket has open. Pass an empty conversation if the user leaves it, and when
// the socket closes; otherwise its entry would stay forever.
func (h *Hub) SetActive(c *Cursor, p gateway.Principal, conversation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if conversation == "" {
		delete(h.active, c)
		return
	}
	h.looks++
	h.active[c] = activeClient{p.Tenant, p.Subject, conversation, h.looks}
}

// Active returns the conversation that a user has open. If several sockets have one, the last call of SetActive counts. It
// returns "" if no socket of the user has any. The caller has to check whether the user may still see it.
func (h *Hub) Active(p gateway.Principal) (conversation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := int64(0)
	for _, l := range h.active {
		if l.tenant == p.Tenant && l.subject == p.Subject && l.turn > last {
			conversation, last = l.conversation, l.turn
		}
	}
	return conversation
}

// Looks reports whether a user has a conversation open on any socket.
func (h *Hub) Looks(p gateway.Principal, conversation string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.active {
		if l.tenant == p.Tenant && l.subject == p.Subject && l.conversation == conversation {
			return true
		}
	}
	return false
}
