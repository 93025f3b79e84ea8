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

// talk is a turn while it runs on a connection.
type talk struct {
	k *socket
	t *turn
	l *link

	id       string // of the message, as the server knows it
	observed bool   // the run is another client's
	leaving  bool   // a turn of Leat shows the rest of it

	shown chan struct{} // closed when all of the run is shown; nil until the server has begun it; guarded by k.mu

	mine       bool                       // what comes is the turn's: its message was taken up
	back       bool                       // the connection was lost before
	place      place                      // of the message in the server's queue, before that
	lostQueued bool                       // it waited in the queue of a connection that was lost
	sent       string                     // id of the request that sent it
	total      int                        // bytes that came of the turn
	questions  map[string]json.RawMessage // inputs of tools that ask, by request
	steer      steering
	syncs      syncs
}

// Run implements [agent.Agent].
func (k *socket) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	t := newTurn(in, out, k.dialect)
	out.Messages(letta.Code().Name)
	s, err := k.session(in)
	if err != nil {
		return err
	}
	k.catchUp(ctx, in.Conversation)
	before := s
	drop := func([]byte) error { return nil } // of before the turn
	l, s, err := k.join(ctx, out, s, drop)
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound && len(in.Session) > 0 {
		// The conversation is gone there: it was deleted, or the server is another one.
		out.Log().Info("the Letta server does not know the conversation any more; a new one is made", "conversation", s.Conversation)
		in.Session = nil
		if s, err = k.session(in); err != nil {
			return err
		}
		l, s, err = k.join(ctx, out, s, drop)
	}
	if err != nil {
		return shown(err)
	}
	if s != before || len(in.Session) == 0 { // one that the settings name is kept too, since it is followed
		if err := keep(ctx, out, s); err != nil {
			l.close()
			return err
		}
	}
	w := &talk{k: k, t: t, l: l, id: clientID(in, in.Message.ID), sent: newID()}
	err = w.begin(ctx, s)
	if err == nil {
		err = w.run(ctx)
	}
	return k.end(ctx, w, err)
}

// Resume implements [agent.Resumer].
func (k *socket) Resume(ctx context.Context, in agent.Input, raw json.RawMessage, out *agent.Emitter) error {
	t := newTurn(in, out, k.dialect)
	out.Messages(letta.Code().Name)
	if err := t.restore(raw); err != nil {
		return err
	}
	if t.noted().Sent == 0 {
		return k.Run(ctx, in, out)
	}
	return k.end(ctx, &talk{k: k, t: t, id: clientID(in, in.Message.ID)}, errBroken)
}

// end takes a turn up again for as long as its connection breaks, and says how it ended.
func (k *socket) end(ctx context.Context, w *talk, err error) error {
	defer func() {
		k.exit(w)
		if w.l != nil {
			w.l.close()
		}
	}()
	for breaks := 0; ; { // in a row, of connections that brought nothing
		switch {
		case w.t.finished():
			return nil
		case stopped(ctx):
			w.halt(ctx)
			return context.Cause(ctx)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, errBroken):
			if w.waits() {
				w.halt(ctx)
			}
			return shown(err)
		}
		if w.l != nil {
			w.l.close()
			w.l = nil
		}
		if breaks > maxCalls {
			return w.t.lost(codeLost, "the connection to the Letta server broke again and again")
		}
		if breaks > 0 {
			if serr := retry.Sleep(ctx, min(k.times.wait<<(breaks-1), k.times.dial)); serr != nil {
				err = serr
				continue
			}
		}
		breaks++
		alive, rerr := w.rejoin(ctx)
		switch {
		case errors.Is(rerr, errBroken):
			err = rerr
			continue
		case ctx.Err() != nil:
			continue
		case rerr != nil:
			return w.t.lost(codeLost, "the connection to the Letta server was lost, and it can't be reached again: "+rerr.Error())
		case w.t.finished():
			continue
		case !alive && w.observed:
			return w.t.lost(codeLost, noEnd)
		case !alive:
			return w.t.lost(codeLost, lostMessage)
		}
		run, seq := w.t.cursor()
		err = w.run(ctx)
		if nowRun, now := w.t.cursor(); nowRun != run || now != seq {
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

// begin sends the message, noted before.
func (w *talk) begin(ctx context.Context, s session) error {
	c, err := content(ctx, w.t.in.Message, w.t.out)
	if err != nil {
		return err
	}
	if err := w.t.note(func() []event.Event { w.t.st.Session, w.t.st.Sent = s, 1; return nil }); err != nil {
		return err
	}
	w.place.asked = true
	return w.say(ctx, w.l, w.sent, w.id, c)
}

func (w *talk) say(ctx context.Context, l *link, id, message string, content any) error {
	return l.send(ctx, w.k.times, input{
		request: request{Type: "input", ID: id, Runtime: w.t.runtime()},
		Payload: createMessage{Kind: "create_message", Messages: []userContent{{Role: "user", Content: content, ID: message}}},
	})
}

// run reads the connection until the turn has ended.
func (w *talk) run(ctx context.Context) error {
	w.k.mu.Lock()
	w.k.live[w.t.in.Turn] = w
	w.k.mu.Unlock()
	ask, cancel := context.WithCancel(ctx)
	a := newAsker()
	defer a.wait.Wait()
	defer cancel()
	defer func() {
		w.k.mu.Lock()
		delete(w.k.live, w.t.in.Turn)
		w.k.mu.Unlock()
		w.steer.over()
	}()
	beat := time.NewTicker(w.k.times.beat)
	defer beat.Stop()
	for {
		select {
		case b, ok := <-w.l.frames:
			if !ok {
				return errors.Join(errBroken, w.l.why())
			}
			w.t.out.Received(b)
			w.place.heard = time.Now()
			if err := w.frame(ctx, b); err != nil {
				return err
			}
			if w.t.finished() {
				return nil
			}
			if w.mine {
				w.total += len(b)
			}
			if w.total > w.k.most {
				w.k.abort(ctx, w.t, w.l) // another viewer would keep it going, and the conversation taken
				return tooLarge
			}
		case r := <-w.t.asks:
			a.ask(ask, w.t, r)
		case answer := <-a.answers:
			if err := w.answer(ctx, answer); err != nil {
				return err
			}
		case <-beat.C:
			if err := w.hold(); err != nil {
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
		Status string              `json:"status"`
		Active []string            `json:"active_run_ids"`
		By     map[string][]string `json:"client_message_ids_by_run_id"`
	} `json:"loop_status"`
	Request struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"input"`
	} `json:"request"`
}

// frame takes a frame.
func (w *talk) frame(ctx context.Context, b []byte) error {
	var f envelope
	if err := json.Unmarshal(b, &f); err != nil {
		return w.t.decode(dialect.Frame{Data: b}) // which says what is wrong with it
	}
	if f.Runtime != nil && f.Runtime.Conversation != w.t.noted().Session.Conversation {
		return nil
	}
	if w.leaving = w.leaving || w.handsOver(&f); w.leaving {
		return w.leave(&f, b)
	}
	switch f.Type {
	case "input_accepted":
		return w.accepted(ctx, &f)
	case "update_device_status":
		return nil // large, and nothing in it is the turn's
	case "sync_response":
		w.syncs.answered(f.ID)
		return nil
	case "update_loop_status":
		w.syncs.loop(f.Loop.Status)
		for _, messages := range f.Loop.By {
			if slices.Contains(messages, w.id) {
				if err := w.taken(ctx); err != nil {
					return err
				}
			}
			w.steer.taken(messages...)
		}
	case "stream_delta":
		if f.Delta.Type == "user_message" {
			if f.Delta.Otid == w.id {
				if err := w.taken(ctx); err != nil {
					return err
				}
			}
			w.steer.taken(f.Delta.Otid)
		}
	case "update_queue":
		w.place.in(f.Queue, w.id)
	case "control_request":
		if w.questions == nil {
			w.questions = map[string]json.RawMessage{}
		}
		if f.Request.Tool == letta.AskTool {
			w.questions[f.ID] = f.Request.Input
		}
	}
	switch {
	case !w.mine && f.Type == "turn_finished":
		w.place.passed = true
		return w.next(ctx)
	case !w.mine:
		return nil // of a turn before, that somebody else began
	case w.place.queued && f.tool() && !w.t.knows(f.Delta.Call):
		return nil // of the run that has taken the message up, which was another client's
	case f.Type == "turn_finished" && w.back && f.Stop == "cancelled":
		return w.t.lost(codeLost, lostMessage) // by nobody, but because its last viewer was gone for a moment
	case f.Type == "turn_finished" && letta.Completed(f.Stop) && w.steer.pending():
		return nil // a message that was sent meanwhile is still to be answered, and begins a turn there
	}
	return w.t.decode(dialect.Frame{Data: b})
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

// answer sends a person's answer. One that somebody else has given before is ignored there.
func (w *talk) answer(ctx context.Context, a event.Answer) error {
	d := decision{Behavior: "deny", Message: a.Text}
	question, asks := w.questions[a.ID]
	switch {
	case asks && a.Decision != event.Deny:
		said := a.Text
		if said == "" {
			said = string(a.Decision)
		}
		d = decision{Behavior: "allow", Input: letta.AnswerTo(question, said)}
	case a.Decision == event.Approve:
		d = decision{Behavior: "allow"}
	case d.Message == "":
		d.Message = "denied"
	}
	if err := w.t.note(func() []event.Event { return w.t.dec.Answered(a.ID, d.Behavior == "allow") }); err != nil {
		return err
	}
	return w.l.send(ctx, w.k.times, input{
		request: request{Type: "input", Runtime: w.t.runtime()},
		Payload: approvalResponse{Kind: "approval_response", ID: a.ID, Decision: d},
	})
}
