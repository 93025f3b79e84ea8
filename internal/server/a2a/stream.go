// Streams of tasks.

package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
)

// errEnough ends the reading of a turn whose client has what it wants: the task waits, or only its current state is needed.
var errEnough = errors.New("a2a: enough")

// follow reads a turn. handle is called with everything so far, first for what exists, and returns errEnough to end the reading.
func (c *call) follow(to target, handle func(*answer.Answer) error, tick func() error, ticks <-chan time.Time) error {
	var current *answer.Answer
	err := follow.Answer{
		Op: func(a *answer.Answer, _ *answer.Op) error {
			current = a
			return nil
		},
		Flush: func() error {
			if current == nil || current.Turn() == nil {
				return nil
			}
			return handle(current)
		},
		Tick: tick, Ticks: ticks,
	}.Follow(c.ctx(), c.surface.gw, c.principal, to.conversation, to.turn, -1)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// view shows a turn as a task.
type view struct {
	to   target
	base string // origin of the gateway, for the addresses of files
	// isOpen reports whether a request of the turn waits for an answer.
	isOpen func(request string) (bool, error)
}

// view returns the view of a task.
func (c *call) view(to target) view {
	return view{to: to, base: c.base, isOpen: func(request string) (bool, error) {
		return c.surface.chats.IsOpen(c.ctx(), c.principal, to.turn, request)
	}}
}

// status returns the state of the task. What was read may be behind an answer of another client, and then the task works.
func (v *view) status(a *answer.Answer) (status, error) {
	turn := a.Turn()
	s := statusOf(turn, v.to.context)
	if s.State != stateInput {
		return s, nil
	}
	if waits, err := v.isOpen(turn.Requests[0].ID); waits || err != nil {
		return s, err
	}
	busy := *turn
	busy.Requests = nil
	return statusOf(&busy, v.to.context), nil
}

// task returns the task with everything so far.
func (v *view) task(a *answer.Answer, s status) task {
	return task{ID: v.to.turn, Context: v.to.context, Status: s, Artifacts: artifactsOf(a, v.base)}
}

// writer writes the events of one stream. It sends the task with everything so far, and then what is added.
type writer struct {
	view
	id      json.RawMessage // of the request
	isOld   bool            // 0.3
	write   func([]byte) error
	isBegun bool
	// What the client has.
	hasText bool // the artifact of the text, which may be empty
	text    string
	files   map[string]artifact // by their ids
	state   string
}

// sync sends what the client lacks. It returns errEnough when the stream has ended.
func (w *writer) sync(a *answer.Answer) error {
	current, err := w.status(a)
	if err != nil {
		return err
	}
	if !w.isBegun {
		err = w.begin(a, current)
	} else {
		err = w.artifacts(a, isOver(current.State) && current.State != stateInput)
	}
	if err != nil {
		return err
	}
	// A client that waits for the last state finds it in a separate event, also if the task had it from the beginning.
	if current.State == w.state && !isOver(current.State) {
		return nil
	}
	w.state = current.State
	if err := w.send(statusUpdate{Task: w.to.turn, Context: w.to.context, Status: current}.forVersion(w.isOld)); err != nil {
		return err
	}
	if isOver(current.State) {
		return errEnough
	}
	return nil
}

// begin sends the task.
func (w *writer) begin(a *answer.Answer, current status) error {
	t := w.task(a, current)
	w.files = map[string]artifact{}
	for _, item := range t.Artifacts {
		w.files[item.ID] = item
	}
	w.isBegun, w.state, w.text = true, current.State, visible(a)
	w.hasText = w.text != ""
	return w.send(t.forVersion(w.isOld))
}

// artifacts sends what was added to the artifacts. A text that no longer begins with what the client has replaces it.
func (w *writer) artifacts(a *answer.Answer, isLast bool) error {
	text := visible(a)
	if delta, extends := strings.CutPrefix(text, w.text); delta != "" || !extends || isLast && w.hasText {
		if !extends {
			delta = text
		}
		u := artifactUpdate{Artifact: artifact{ID: textArtifact, Parts: []part{textPart(delta)}}, IsAppend: extends && w.hasText, IsLast: isLast}
		w.text, w.hasText = text, true
		if err := w.update(u); err != nil {
			return err
		}
	}
	for _, item := range fileArtifacts(a, w.base) {
		if known, ok := w.files[item.ID]; ok && known.equals(item) {
			continue
		}
		w.files[item.ID] = item
		if err := w.update(artifactUpdate{Artifact: item, IsLast: true}); err != nil {
			return err
		}
	}
	return nil
}

// update sends an update of an artifact.
func (w *writer) update(u artifactUpdate) error {
	u.Task, u.Context = w.to.turn, w.to.context
	return w.send(u.forVersion(w.isOld))
}

// send writes one event.
func (w *writer) send(result any) error {
	b, err := appendEvent(nil, response{Version: "2.0", ID: w.id, Result: result})
	if err != nil {
		return err
	}
	return w.write(b)
}

// appendEvent appends a server-sent event.
func appendEvent(b []byte, r response) ([]byte, error) {
	text, err := server.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(append(append(b, "data: "...), text...), "\n\n"...), nil
}

// keepAlive is a comment, which clients ignore.
const keepAlive = ": keep-alive\n\n"

// stream streams a task until it has ended or waits for an answer.
func (c *call) stream(to target) error {
	c.w.Header().Set("Leat-Conversation", to.conversation)
	s := follow.OpenStream(c.surface.srv, c.surface.viewers, c.w, c.r, server.EventStream, keepAlive)
	defer s.Close()
	w := &writer{view: c.view(to), id: c.request.ID, isOld: c.isOld, write: s.Write}
	err := c.follow(to, w.sync, s.Tick, s.Ticks)
	// A client that has disconnected reads nothing more, and its task continues.
	cause := context.Cause(c.ctx())
	if err == nil || s.Err != nil || errors.Is(cause, context.Canceled) {
		return nil
	}
	if cause != nil {
		err = cause
	}
	if server.Restarting(err) {
		err = &rpcError{codeInternal, "The gateway is restarting. Subscribe to the task again to see the rest."}
	}
	failure, _ := errorOf(err)
	b, err := appendEvent(nil, response{Version: "2.0", ID: c.request.ID, Error: failure})
	if err != nil {
		return err
	}
	_ = s.Write(b) // best effort
	return nil
}

// viewing counts the client as a viewer while it waits. It comes before anything that changes the conversation, so that a client above the limit
// leaves no task behind.
func (c *call) viewing(run func() (any, error)) (any, error) {
	leave, err := c.surface.gw.AddViewer(c.principal)
	if err != nil {
		return nil, err
	}
	defer leave()
	return run()
}

// sendStreaming begins or answers a task, and streams it.
func (c *call) sendStreaming() (any, error) {
	return c.viewing(func() (any, error) {
		var in sendParams
		to, err := c.begin(&in)
		if err != nil {
			return nil, err
		}
		return nil, c.stream(to)
	})
}

// send begins or answers a task, and returns it when it has ended or waits, or at once.
func (c *call) send() (any, error) {
	return c.viewing(func() (any, error) {
		var in sendParams
		to, err := c.begin(&in)
		if err != nil {
			return nil, err
		}
		isImmediate := in.Configuration.Immediately || in.Configuration.IsBlocking != nil && !*in.Configuration.IsBlocking
		t, err := c.snapshot(to, !isImmediate)
		if err != nil {
			return nil, err
		}
		return t.forVersion(c.isOld), nil
	})
}
