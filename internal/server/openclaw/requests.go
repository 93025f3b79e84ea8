// Requests of agents, which are approvals and questions in the protocol.

package openclaw

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// requestLife is how long clients show a request after they have got it. Leat closes the request when its turn has waited for too long, which may be
// earlier.
const requestLife = 24 * time.Hour

// requestID returns the id of a request for clients: that of its turn and its own.
func requestID(turn, request string) string { return turn + ":" + request }

// deadline returns when a client that gets a request now hides it, in epoch milliseconds.
func deadline() int64 { return time.Now().Add(requestLife).UnixMilli() }

// closeRequests queues events for the requests of a turn that are no longer open. They come before what the agent did with the answers.
func (r *run) closeRequests(turn *transcript.Turn) {
	for id, kind := range r.requests {
		if !slices.ContainsFunc(turn.Requests, func(rq *transcript.Request) bool { return rq.ID == id }) {
			r.closeRequest(id, kind, turn.Unfinished())
		}
	}
}

// openRequests queues events for the new requests of a turn. They come after the text before them.
func (r *run) openRequests(turn *transcript.Turn) {
	for _, rq := range turn.Requests {
		if _, ok := r.requests[rq.ID]; ok {
			continue
		}
		r.requests[rq.ID] = rq.Kind
		if rq.Kind == event.RequestApproval {
			r.queue = append(r.queue, queued{name: "plugin.approval.requested", payload: approvalOf(r.s.key, r.id, turn.ID, rq)})
		} else {
			r.queue = append(r.queue, queued{name: "question.requested", payload: questionOf(r.s.key, r.id, turn.ID, rq)})
		}
	}
}

// closeRequest queues the event that a request is closed. A turn that continues has got an answer.
func (r *run) closeRequest(id string, kind event.RequestKind, continues bool) {
	delete(r.requests, id)
	name := requestID(r.turn, id)
	if kind == event.RequestApproval {
		r.queue = append(r.queue, queued{name: "plugin.approval.resolved", payload: approvalResolved{name, time.Now().UnixMilli()}})
		return
	}
	resolved, isOwn := r.s.resolutions[name]
	delete(r.s.resolutions, name)
	if !isOwn {
		resolved = resolutionElsewhere(continues)
	}
	r.queue = append(r.queue, queued{name: "question.resolved", payload: questionResolved{name, resolved}})
}

// openRequests calls fn for each open request of the principal's conversations.
func (c *connection) openRequests(fn func(k sessionKey, run, turn string, r *transcript.Request)) error {
	summaries, err := c.summaries()
	if err != nil {
		return err
	}
	for i := range summaries {
		s := &summaries[i]
		if len(s.WaitingTurns) == 0 {
			continue
		}
		k := c.keyFor(s)
		err := c.s.gw.ViewTranscript(c.ctx, c.principal(), s.ID, func(t *transcript.Transcript) bool {
			for _, turn := range t.Turns {
				for _, r := range turn.Requests {
					fn(k, runID(t, turn), turn.ID, r)
				}
			}
			return true
		})
		if err != nil && !errors.Is(err, gateway.ErrNotFound) {
			return err
		}
	}
	return nil
}

// openRequest is an open request, with the conversation and the turn that it belongs to.
type openRequest struct {
	conversation, turn string
	event.Request
}

// command returns the command that answers the request, without the answer.
func (r *openRequest) command() gateway.Command {
	return gateway.Command{Type: gateway.CommandAnswer, Turn: r.turn, Request: r.ID}
}

// request returns the open request with an id, or the error unknown.
func (c *connection) request(id string, unknown error) (*openRequest, error) {
	turn, name, ok := strings.Cut(id, ":")
	if !ok {
		return nil, unknown
	}
	conversation, state, err := c.s.gw.Turn(c.ctx, c.principal(), gateway.ActionRead, turn)
	if errors.Is(err, gateway.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	for _, r := range state.Requests {
		if r.ID == name {
			return &openRequest{conversation, turn, r.Request}, nil
		}
	}
	return nil, unknown
}
