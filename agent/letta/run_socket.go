package letta

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
)

// socketTurn is a turn while it runs on a connection.
type socketTurn struct {
	agent *socketAgent
	turn  *turn
	conn  *connection

	id         string // of the message, as the server knows it
	isObserved bool   // the run is another client's
	isLeaving  bool   // a turn of Leat shows the rest of it

	shownDone chan struct{} // closed when all of the run is shown; nil until the server has begun it; guarded by k.mu

	isActive        bool                       // what comes is the turn's: its message was taken up
	wasDisconnected bool                       // the connection was lost before
	queue           queueState                 // of the message in the server's queue, before that
	lostWhileQueued bool                       // it waited in the queue of a connection that was lost
	requestID       string                     // id of the request that sent it
	bytes           int                        // bytes that came of the turn
	questions       map[string]json.RawMessage // inputs of tools that ask, by request
	steer           steerQueue
	syncs           syncReplies
}

// Run implements [agent.Agent].
func (k *socketAgent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	t := newTurn(in, emitter, k.dialect)
	emitter.Messages(letta.Code().Name)
	s, err := k.session(in)
	if err != nil {
		return err
	}
	k.catchUp(ctx, in.Conversation)
	before := s
	discard := func([]byte) error { return nil } // of before the turn
	l, s, err := k.join(ctx, emitter, s, discard)
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound && len(in.Session) > 0 {
		// The conversation is gone there: it was deleted, or the server is another one.
		emitter.Log().Info("the Letta server does not know the conversation any more; a new one is made", "conversation", s.Conversation)
		in.Session = nil
		if s, err = k.session(in); err != nil {
			return err
		}
		l, s, err = k.join(ctx, emitter, s, discard)
	}
	if err != nil {
		return readerError(err)
	}
	if s != before || len(in.Session) == 0 { // one that the settings name is kept too, since it is followed
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

// Resume implements [agent.Resumer].
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

// runToEnd takes a turn up again for as long as its connection breaks, and says how it ended.
func (k *socketAgent) runToEnd(ctx context.Context, w *socketTurn, err error) error {
	defer func() {
		k.leaveOrder(w)
		if w.conn != nil {
			w.conn.close()
		}
	}()
	for breaks := 0; ; { // in a row, of connections that brought nothing
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
			return w.turn.endLost(codeLost, "the connection to the Letta server broke again and again")
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
			return w.turn.endLost(codeLost, "the connection to the Letta server was lost, and it can't be reached again: "+rerr.Error())
		case w.turn.isFinished():
			continue
		case !isRunning && w.isObserved:
			return w.turn.endLost(codeLost, noEnd)
		case !isRunning:
			return w.turn.endLost(codeLost, lostMessage)
		}
		run, seq := w.turn.cursor()
		err = w.readUntilEnd(ctx)
		if nowRun, nowSeq := w.turn.cursor(); nowRun != run || nowSeq != seq {
			breaks = 0
		}
	}
}

const lostMessage = "the connection to the Letta server was lost, and with it the rest of the answer"

type input struct {
	request
	Payload any `json:"payload"`
}

type createMessage struct {
	Kind     string        `json:"kind"`
	Messages []userContent `json:"messages"`
}

type userContent struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	ID      string `json:"client_message_id"`
}

// sendFirst sends the message, noted before.
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

func (w *socketTurn) sendMessage(ctx context.Context, l *connection, id, message string, content any) error {
	return l.send(ctx, w.agent.times, input{
		request: request{Type: "input", ID: id, Runtime: w.turn.runtime()},
		Payload: createMessage{Kind: "create_message", Messages: []userContent{{Role: "user", Content: content, ID: message}}},
	})
}

// readUntilEnd reads the connection until the turn has ended.
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
			w.turn.emitter.Received(b)
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
				w.agent.abort(ctx, w.turn, w.conn) // another viewer would keep it going, and the conversation taken
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

// envelope is what is of interest of a frame beside what the decoder makes of it.
type envelope struct {
	Type        string       `json:"type"`
	ID          string       `json:"request_id"`
	Accepted    bool         `json:"accepted"`
	Disposition string       `json:"disposition"`
	Error       string       `json:"error"`
	Stop        string       `json:"stop_reason"`
	Runtime     *runtime     `json:"runtime"`
	Queue       []queuedItem `json:"queue"`
	Delta       struct {
		Type string `json:"message_type"`
		Otid string `json:"otid"`
		Call string `json:"tool_call_id"`
		Stop string `json:"stop_reason"`
		Tool struct {
			Call string `json:"tool_call_id"`
		} `json:"tool_call"`
	} `json:"delta"`
	Loop struct {
		Status        string              `json:"status"`
		Active        []string            `json:"active_run_ids"`
		MessagesByRun map[string][]string `json:"client_message_ids_by_run_id"`
	} `json:"loop_status"`
	Request struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"input"`
	} `json:"request"`
}

// handleFrame takes a frame.
func (w *socketTurn) handleFrame(ctx context.Context, b []byte) error {
	var f envelope
	if err := json.Unmarshal(b, &f); err != nil {
		return w.turn.decode(dialect.Frame{Data: b}) // which says what is wrong with it
	}
	if f.Runtime != nil && f.Runtime.Conversation != w.turn.snapshot().Session.Conversation {
		return nil
	}
	if w.isLeaving = w.isLeaving || w.passesToOwnTurn(&f); w.isLeaving {
		return w.leaveRun(&f, b)
	}
	switch f.Type {
	case "input_accepted":
		return w.handleAccepted(ctx, &f)
	case "update_device_status":
		return nil // large, and nothing in it is the turn's
	case "sync_response":
		w.syncs.resolve(f.ID)
		return nil
	case "update_loop_status":
		w.syncs.setLoopStatus(f.Loop.Status)
		for _, messages := range f.Loop.MessagesByRun {
			if slices.Contains(messages, w.id) {
				if err := w.markStarted(ctx); err != nil {
					return err
				}
			}
			w.steer.remove(messages...)
		}
	case "stream_delta":
		if f.Delta.Type == "user_message" {
			if f.Delta.Otid == w.id {
				if err := w.markStarted(ctx); err != nil {
					return err
				}
			}
			w.steer.remove(f.Delta.Otid)
		}
	case "update_queue":
		w.queue.findItem(f.Queue, w.id)
	case "control_request":
		if w.questions == nil {
			w.questions = map[string]json.RawMessage{}
		}
		if f.Request.Tool == letta.AskTool {
			w.questions[f.ID] = f.Request.Input
		}
	}
	switch {
	case !w.isActive && f.Type == "turn_finished":
		w.queue.earlierFinished = true
		return w.resumeQueue(ctx)
	case !w.isActive:
		return nil // of a turn before, that somebody else began
	case w.queue.isQueued && f.isToolFrame() && !w.turn.hasCall(f.Delta.Call):
		return nil // of the run that has taken the message up, which was another client's
	case f.Type == "turn_finished" && w.wasDisconnected && f.Stop == "cancelled":
		return w.turn.endLost(codeLost, lostMessage) // by nobody, but because its last viewer was gone for a moment
	case f.Type == "turn_finished" && letta.Completed(f.Stop) && w.steer.hasOpen():
		return nil // a message that was sent meanwhile is still to be answered, and begins a turn there
	}
	return w.turn.decode(dialect.Frame{Data: b})
}

type decision struct {
	Behavior string          `json:"behavior"`
	Message  string          `json:"message,omitempty"`
	Input    json.RawMessage `json:"updated_input,omitempty"`
}

type approvalResponse struct {
	Kind     string   `json:"kind"`
	ID       string   `json:"request_id"`
	Decision decision `json:"decision"`
}

// sendAnswer sends a person's answer. One that somebody else has given before is ignored there.
func (w *socketTurn) sendAnswer(ctx context.Context, a event.Answer) error {
	d := decision{Behavior: "deny", Message: a.Text}
	question, isQuestion := w.questions[a.ID]
	switch {
	case isQuestion && a.Decision != event.Deny:
		text := a.Text
		if text == "" {
			text = string(a.Decision)
		}
		d = decision{Behavior: "allow", Input: letta.AnswerTo(question, text)}
	case a.Decision == event.Approve:
		d = decision{Behavior: "allow"}
	case d.Message == "":
		d.Message = "denied"
	}
	if err := w.turn.update(func() []event.Event { return w.turn.lettaDecoder.RecordAnswer(a.ID, d.Behavior == "allow") }); err != nil {
		return err
	}
	return w.conn.send(ctx, w.agent.times, input{
		request: request{Type: "input", Runtime: w.turn.runtime()},
		Payload: approvalResponse{Kind: "approval_response", ID: a.ID, Decision: d},
	})
}
