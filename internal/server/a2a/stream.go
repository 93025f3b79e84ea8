// Streams of tasks.

package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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

// waits reports whether a turn waits for its client. What is read may be behind what another client has answered.
func (c *call) waits(a *answer.Answer) (bool, error) {
	turn := a.Turn()
	if !turn.Unfinished() || len(turn.Requests) == 0 {
		return false, nil
	}
	return c.surface.chats.IsOpen(c.ctx(), c.principal, turn.ID, turn.Requests[0].ID)
}

// writer writes the events of one stream. It sends the task with everything so far, and then what is added.
type writer struct {
	call    *call
	to      target
	write   func([]byte) error
	isBegun bool
	// What the client has.
	text  string
	files map[string]artifact // by their ids
	state string
}

// sync sends what the client lacks. It returns errEnough when the stream has ended.
func (w *writer) sync(a *answer.Answer) error {
	waits, err := w.call.waits(a)
	if err != nil {
		return err
	}
	current := statusOf(a.Turn(), w.to.context)
	if current.State == stateInput && !waits {
		current = status{State: stateWorking, Time: current.Time} // it was answered meanwhile
	}
	text := visible(a)
	if !w.isBegun {
		w.isBegun = true
		t := task{ID: w.to.turn, Context: w.to.context, Status: current, Artifacts: artifactsOf(a, w.call.base)}
		w.files = map[string]artifact{}
		for _, item := range t.Artifacts {
			w.files[item.ID] = item
		}
		w.text, w.state = text, current.State
		if err := w.send(t.forVersion(w.call.isOld)); err != nil {
			return err
		}
	} else if err := w.artifacts(a, text, isOver(current.State) && current.State != stateInput); err != nil {
		return err
	}
	// A client that waits for the last state finds it in a separate event, also if the task had it from the beginning.
	if current.State == w.state && !isOver(current.State) {
		return nil
	}
	w.state = current.State
	if err := w.send(statusUpdate{Task: w.to.turn, Context: w.to.context, Status: current}.forVersion(w.call.isOld)); err != nil {
		return err
	}
	if isOver(current.State) {
		return errEnough
	}
	return nil
}

// artifacts sends what was added to the artifacts. A text that no longer begins with what the client has replaces it.
func (w *writer) artifacts(a *answer.Answer, text string, isLast bool) error {
	if delta, extends := strings.CutPrefix(text, w.text); delta != "" || !extends || isLast && text != "" {
		u := artifactUpdate{Task: w.to.turn, Context: w.to.context, IsAppend: extends && w.text != "", IsLast: isLast}
		if !extends {
			delta = text
		}
		u.Artifact = artifact{ID: textArtifact, Parts: []part{textPart(delta)}}
		w.text = text
		if err := w.send(u.forVersion(w.call.isOld)); err != nil {
			return err
		}
	}
	for _, item := range fileArtifacts(a, w.call.base) {
		if known, ok := w.files[item.ID]; ok && known.equals(item) {
			continue
		}
		w.files[item.ID] = item
		u := artifactUpdate{Task: w.to.turn, Context: w.to.context, Artifact: item, IsLast: true}
		if err := w.send(u.forVersion(w.call.isOld)); err != nil {
			return err
		}
	}
	return nil
}

// send writes one event.
func (w *writer) send(result any) error {
	b, err := appendEvent(nil, response{Version: "2.0", ID: w.call.request.ID, Result: result})
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
	stream, writeErr := c.surface.srv.OpenStream(c.w, c.r, http.StatusOK, server.EventStream)
	metrics := c.surface.viewers.Open()
	defer metrics.Close()
	ticker := time.NewTicker(stream.Beat)
	defer ticker.Stop()
	write := func(b []byte) error {
		if writeErr == nil {
			writeErr = stream.Write(b)
			metrics.Frame(len(b))
		}
		return writeErr
	}
	w := &writer{call: c, to: to, write: write}
	err := c.follow(to, w.sync, func() error { return write([]byte(keepAlive)) }, ticker.C)
	// A client that has disconnected reads nothing more, and its task continues.
	cause := context.Cause(c.ctx())
	if err == nil || writeErr != nil || errors.Is(cause, context.Canceled) {
		return nil
	}
	if cause != nil {
		err = cause
	}
	if server.Restarting(err) {
		err = &rpcError{codeInternal, "The gateway is restarting. Subscribe to the task again to see the rest."}
	}
	failure, _ := errorOf(err)
	b, err := appendEvent(nil, response{Version: "2.0", ID: json.RawMessage(c.request.ID), Error: failure})
	if err != nil {
		return err
	}
	_ = write(b) // best effort
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
