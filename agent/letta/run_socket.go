// Run and Resume over the App Server: the life of one turn over as many connections as it takes.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
)

// socketTurn is a turn of the App Server. All fields are used by the goroutine of Run, Resume or Observe, except those that say otherwise
// and those with locks.
type socketTurn struct {
	agent *socketAgent
	turn  *turn
	conn  *connection // nil while the turn has no connection; other goroutines read it with agent.mu locked

	id         string // client_message_id of the turn's message
	isObserved bool   // another client started the run
	isLeaving  bool   // the observed run has taken up a message of Leat, whose turn shows the rest (see leaveRun)

	shownDone chan struct{} // closed when the whole run is shown; nil until the server has started it; guarded by agent.mu

	isActive        bool                       // the server has started the run of the message, so frames belong to the turn
	wasDisconnected bool                       // a connection was lost while the turn ran
	queue           queueState                 // of the message, before isActive
	lostWhileQueued bool                       // a connection was lost while the message was queued
	requestID       string                     // of the request that sent the message
	bytes           int                        // received while active; limited by base.maxStream
	questions       map[string]json.RawMessage // inputs of the question tool, by request id; the answer is merged into them
	steer           steerQueue
	syncs           syncReplies
}

// Run implements [agent.Agent]. It waits until earlier runs of the session are recorded, subscribes to the conversation, stores
// the session, and only then sends the message. If the server has lost the conversation, Run creates a new one: the user gets
// an answer, but the agent's memory of the conversation is gone.
func (k *socketAgent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	t := newTurn(in, emitter, k.dialect)
	emitter.Messages(letta.Code().Name)
	s, err := k.session(in)
	if err != nil {
		return err
	}
	// Another client's run must be recorded before this turn's answer, or readers would see them in the wrong order.
	k.catchUp(ctx, in.Conversation)
	before := s
	discard := func([]byte) error { return nil } // frames before the turn
	l, s, err := k.join(ctx, emitter, s, discard)
	if f, ok := errors.AsType[*failure](err); ok && f.status == http.StatusNotFound && len(in.Session) > 0 {
		// The conversation was deleted, or the target is another server now.
		emitter.Log().Info("the Letta server doesn't know the conversation any more; creating a new one", "conversation", s.Conversation)
		in.Session = nil
		if s, err = k.session(in); err != nil {
			return err
		}
		l, s, err = k.join(ctx, emitter, s, discard)
	}
	if err != nil {
		return readerError(err)
	}
	if s != before || len(in.Session) == 0 { // also store a session that the settings name, so that Follow follows it
		if err := storeSession(ctx, emitter, s); err != nil {
			l.close()
			return err
		}
	}
	w := &socketTurn{agent: k, turn: t, conn: l, id: clientID(in, in.Message.ID), requestID: newID()}
	err = w.sendFirst(ctx, s)
	if err == nil {
		err = w.readUntilEnd(ctx)
	}
	return k.runToEnd(ctx, w, err)
}

// Resume implements [agent.Resumer]. A turn that had not sent its message starts again. Any other one is handled like a turn
// whose connection broke.
func (k *socketAgent) Resume(ctx context.Context, in agent.Input, raw json.RawMessage, emitter *agent.Emitter) error {
	t := newTurn(in, emitter, k.dialect)
	emitter.Messages(letta.Code().Name)
	if err := t.restore(raw); err != nil {
		return err
	}
	if t.snapshot().SendCount == 0 {
		return k.Run(ctx, in, emitter)
	}
	return k.runToEnd(ctx, &socketTurn{agent: k, turn: t, id: clientID(in, in.Message.ID)}, errBroken)
}

// runToEnd reconnects for as long as err says that the connection broke, and returns when the turn has ended. A turn that a
// user has stopped is stopped at the server too; if only ctx has ended, as for a restart, the run is left alone.
//
// If the server can't be reached again, if the run is not running any more but its end is missing, or if more than maxCalls
// connections in a row broke without a new chunk, the turn ends as interrupted (endLost). It closes the turn's connection.
func (k *socketAgent) runToEnd(ctx context.Context, w *socketTurn, err error) error {
	defer func() {
		k.leaveOrder(w)
		if w.conn != nil {
			w.conn.close()
		}
	}()
	for breaks := 0; ; { // connections in a row that broke without a new chunk
		switch {
		case w.turn.isFinished():
			return nil
		case isStopped(ctx):
			w.stopUpstream(ctx)
			return context.Cause(ctx)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, errBroken):
			if w.isQueued() {
				w.stopUpstream(ctx)
			}
			return readerError(err)
		}
		if w.conn != nil {
			w.conn.close()
			w.conn = nil
		}
		if breaks > maxCalls {
			return w.turn.endLost(codeLost, "the connection to the Letta server broke repeatedly")
		}
		if breaks > 0 {
			if serr := retry.Sleep(ctx, min(k.times.retryDelay<<(breaks-1), k.times.dial)); serr != nil {
				err = serr
				continue
			}
		}
		breaks++
		isRunning, rerr := w.reconnect(ctx)
		switch {
		case errors.Is(rerr, errBroken):
			err = rerr
			continue
		case ctx.Err() != nil:
			continue
		case rerr != nil:
			return w.turn.endLost(codeLost, "the connection to the Letta server was lost, and reconnecting failed: "+rerr.Error())
		case w.turn.isFinished():
			continue
		case !isRunning && w.isObserved:
			return w.turn.endLost(codeLost, noEnd)
		case !isRunning:
			return w.turn.endLost(codeLost, lostMessage)
		}
		// A connection that brings a new chunk is progress, so the count of broken connections starts again.
		run, seq := w.turn.cursor()
		err = w.readUntilEnd(ctx)
		if nowRun, nowSeq := w.turn.cursor(); nowRun != run || nowSeq != seq {
			breaks = 0
		}
	}
}

// lostMessage is the error of a run that ended while Leat had no connection, and whose end is not in the history.
const lostMessage = "the connection to the Letta server was lost, and with it the rest of the answer"

// input is the command that sends a payload to a conversation: a message or an answer to an approval.
type input struct {
	request
	Payload any `json:"payload"`
}

// createMessage is the payload that sends a message.
type createMessage struct {
	Kind     string        `json:"kind"`
	Messages []userContent `json:"messages"`
}

// userContent is a user's message. The server repeats ID in its status frames and in its history.
type userContent struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	ID      string `json:"client_message_id"`
}

// sendFirst sends the turn's message, after it has stored that it will.
func (w *socketTurn) sendFirst(ctx context.Context, s session) error {
	c, err := content(ctx, w.turn.in.Message, w.turn.emitter)
	if err != nil {
		return err
	}
	if err := w.turn.update(func() []event.Event { w.turn.saved.Session, w.turn.saved.SendCount = s, 1; return nil }); err != nil {
		return err
	}
	w.queue.isSent = true
	return w.sendMessage(ctx, w.conn, w.requestID, w.id, c)
}

// sendMessage sends a user's message. id is that of the request, message the client_message_id.
func (w *socketTurn) sendMessage(ctx context.Context, l *connection, id, message string, content any) error {
	return l.send(ctx, w.agent.times, input{
		request: request{Type: "input", ID: id, Runtime: w.turn.runtime()},
		Payload: createMessage{Kind: "create_message", Messages: []userContent{{Role: "user", Content: content, ID: message}}},
	})
}

// readUntilEnd handles the frames of the connection until the turn has ended. Meanwhile it shows requests for approval, sends
// users' answers, and reports a queued turn as alive. The error wraps errBroken if the connection ended. While it runs, Steer
// and Probe find the turn in activeTurns.
func (w *socketTurn) readUntilEnd(ctx context.Context) error {
	w.agent.mu.Lock()
	w.agent.activeTurns[w.turn.in.Turn] = w
	w.agent.mu.Unlock()
	ask, cancel := context.WithCancel(ctx)
	a := newAsker()
	defer a.tasks.Wait()
	defer cancel()
	defer func() {
		w.agent.mu.Lock()
		delete(w.agent.activeTurns, w.turn.in.Turn)
		w.agent.mu.Unlock()
		w.steer.close()
	}()
	beat := time.NewTicker(w.agent.times.heartbeat)
	defer beat.Stop()
	for {
		select {
		case b, ok := <-w.conn.frames:
			if !ok {
				return errors.Join(errBroken, w.conn.closeError())
			}
			w.turn.emitter.CaptureReceived(b)
			w.queue.lastFrame = time.Now()
			if err := w.handleFrame(ctx, b); err != nil {
				return err
			}
			if w.turn.isFinished() {
				return nil
			}
			if w.isActive {
				w.bytes += len(b)
			}
			if w.bytes > w.agent.maxStream {
				w.agent.abort(ctx, w.turn, w.conn) // otherwise another viewer would keep the turn running, and the conversation busy
				return tooLarge
			}
		case r := <-w.turn.requests:
			a.ask(ask, w.turn, r)
		case answer := <-a.answers:
			if err := w.sendAnswer(ctx, answer); err != nil {
				return err
			}
		case <-beat.C:
			if err := w.keepAlive(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
