package hub

import (
	"context"
	"errors"
	"sync"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// maxFrames and maxBytes bound the ring: some seconds of a program that prints as fast as sockets take it.
	maxFrames = 1024
	maxBytes  = 4 << 20
)

// Frame is one thing to tell.
type Frame struct {
	// Conversation is what it is about: whoever may read it is told. Empty: admins are.
	Conversation string
	// Gone, where it is given, is a conversation that is deleted, as it was: whoever could read it is told.
	Deleted *journal.Summary
	// Everybody tells a frame without a conversation to all who are connected.
	Broadcast bool
	// Private narrows the frame to one subject of a tenant; of the admin both are empty.
	Private         bool
	Tenant, Subject string
	// Client, where it is given, narrows the frame to the sockets that connected with that clientId.
	Client string
	// Key names what the frame tells the state of, such as "title/" and an id; empty: every frame counts.
	Key string
	// JSON is the frame, on one line. It is not copied.
	JSON []byte
}

// Reader decides who may see a conversation: the gateway does.
type Reader interface {
	Conversation(ctx context.Context, p gateway.Principal, action gateway.Action, id string) (journal.Summary, error)
}

// Hub is where frames are sent to and taken from. The methods may be called from several goroutines.
type Hub struct {
	reader Reader

	mu            sync.Mutex
	frames        []Frame
	firstPosition int64 // the position of frames[0]
	bytes         int
	newest        map[string]int64 // the position of each key's newest frame
	changed       chan struct{}
	active        map[*Cursor]activeClient // of sockets whose users look at a conversation
	looks         int64
}

// New returns a hub without frames.
func New(r Reader) *Hub {
	return &Hub{reader: r, newest: map[string]int64{}, active: map[*Cursor]activeClient{}, changed: make(chan struct{})}
}

// Send hands a frame to all sockets that may see it. It never blocks.
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
		*old = Frame{} // append copies the array only now and then
	}
	h.frames = h.frames[n:]
	h.firstPosition += int64(n)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Changed returns a channel that is closed when the next frame is there.
func (h *Hub) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Cursor is a socket's place in the ring. It belongs to one goroutine.
type Cursor struct {
	h  *Hub
	at int64
}

// Join returns a cursor behind all frames that there are.
func (h *Hub) Join() *Cursor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Cursor{h: h, at: h.firstPosition + int64(len(h.frames))}
}

// Next returns the JSON of the next frame that p may see on a socket of the given clientId, nil where there is none now, and
// how many frames the ring has dropped before the cursor came to them: those may have been p's or not.
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

// step moves the cursor over one frame, and those whose key a newer one has.
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

func (h *Hub) may(ctx context.Context, f *Frame, p gateway.Principal, client string) (bool, error) {
	switch {
	case f.Client != "" && f.Client != client, f.Private && (f.Tenant != p.Tenant || f.Subject != p.Subject):
		return false, nil
	case f.Deleted != nil:
		return gateway.Decide(p, gateway.ActionRead, f.Deleted) == nil, nil
	case f.Conversation != "":
		_, err := h.reader.Conversation(ctx, p, gateway.ActionRead, f.Conversation)
		if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrForbidden) {
			return false, nil
		}
		return err == nil, err
	}
	return f.Broadcast || f.Private || p.Admin, nil
}
