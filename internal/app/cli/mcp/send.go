// Sending a question, whatever happens to its call meanwhile.

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	leat "github.com/leat-dev/leat/clients/go"
)

// sendGrace is how long a question is still sent after its call was canceled, or after its host has closed the input. It is shorter than the
// connection waits for its goroutines at the end.
const sendGrace = 3 * time.Second

// question is a text that is put to an agent. Without a conversation, send creates one and sets its id.
type question struct {
	text         string
	agent        string // if empty, that of the conversation, or for a new one that of the options
	conversation string
}

// send sends a question, in a new conversation if it has none.
//
// A request in progress isn't given up with the call, because it would be unknown whether it took effect. So a question whose call is canceled has
// either been sent, and its turn is known, or it leaves nothing: a conversation that was created for a question that isn't sent, or that the
// gateway refuses, is deleted. Only a gateway that doesn't respond within sendGrace leaves the outcome open.
func (h *host) send(ctx context.Context, q *question) (leat.Ack, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return leat.Ack{}, fmt.Errorf("id of the message: %w", err)
	}
	if ctx.Err() != nil {
		return leat.Ack{}, context.Cause(ctx)
	}
	sendCtx, end := outlast(ctx, sendGrace)
	defer end()
	isNew := q.conversation == ""
	if isNew {
		c, err := h.Client.Create(sendCtx, leat.CreateOptions{Agent: cmp.Or(q.agent, h.AgentName), Title: h.Title(q.text)})
		if err != nil {
			return leat.Ack{}, err
		}
		q.conversation = c.ID
	}
	var ack leat.Ack
	isUnsent := ctx.Err() != nil
	if isUnsent {
		err = context.Cause(ctx)
	} else {
		// Each question gets a separate turn, because a call has one answer.
		message := leat.Message{ID: id.String(), Text: q.text, Source: "mcp"}
		ack, err = h.Client.Do(sendCtx, q.conversation, leat.Command{Type: "send", Key: message.ID, Message: &message, Agent: q.agent, Queue: true})
	}
	if isNew && (isUnsent || isRefusal(err)) {
		err = errors.Join(err, h.Client.Delete(sendCtx, q.conversation))
	}
	return ack, err
}

// isRefusal reports whether a request failed without an effect. Other failures leave it unknown.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*leat.Error](err)
	return ok && (e.Rejected || e.Status/100 == 4 && e.Status != http.StatusRequestTimeout)
}

// outlast returns a context that ends some time after ctx, or when end is called.
func outlast(ctx context.Context, grace time.Duration) (longer context.Context, end func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	timer := time.AfterFunc(math.MaxInt64, cancel)
	stop := context.AfterFunc(ctx, func() { timer.Reset(grace) })
	return longer, func() {
		stop()
		timer.Stop()
		cancel()
	}
}
