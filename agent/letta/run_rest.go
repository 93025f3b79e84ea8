package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/sse"
)

// Run implements [agent.Agent].
func (r *rest) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	t := newTurn(in, out, r.dialect)
	s, err := r.session(in)
	if err != nil {
		return err
	}
	fresh := s.Conversation == ""
	for {
		if s, err = r.open(ctx, t, s); err != nil {
			return shown(err)
		}
		if fresh {
			if err := keep(ctx, out, s); err != nil {
				return err
			}
		}
		if err := t.note(func() []event.Event { t.st.Session, t.st.Sent = s, 1; return nil }); err != nil {
			return err
		}
		content, err := content(ctx, in.Message, out)
		if err != nil {
			return err
		}
		err = r.drive(ctx, t, r.message(t, content), false)
		var f *failure
		if fresh || !errors.As(err, &f) || f.status != http.StatusNotFound || len(in.Session) == 0 {
			return shown(err)
		}
		// The conversation is gone there: it was deleted, or the server is another one.
		out.Log().Info("the Letta server does not know the conversation any more; a new one is made", "conversation", s.Conversation)
		in.Session, fresh = nil, true
		if s, err = r.session(in); err != nil {
			return err
		}
	}
}

// Resume implements [agent.Resumer].
func (r *rest) Resume(ctx context.Context, in agent.Input, raw json.RawMessage, out *agent.Emitter) error {
	t := newTurn(in, out, r.dialect)
	if err := t.restore(raw); err != nil {
		return err
	}
	was := t.noted()
	switch {
	case was.Sent == 0:
		return r.Run(ctx, in, out)
	case len(t.waiting()) > 0:
		return shown(r.drive(ctx, t, nil, false))
	case !r.cfg.Background:
		return t.lost(codeLost, "Leat was restarted while the agent answered, and the run was not one that goes on by itself")
	case was.Run != "" || !t.unheard():
		return shown(r.drive(ctx, t, r.onward(t), true))
	case was.Answer != nil:
		return shown(r.drive(ctx, t, r.send(t, was.Answer), false))
	}
	// Whether it arrived is not known. A server that knows its otid goes on with the run that it began.
	content, err := content(ctx, in.Message, out)
	if err != nil {
		return err
	}
	return shown(r.drive(ctx, t, r.message(t, content), false))
}

// sending is the body of what is sent to a conversation.
type sending struct {
	Messages   []any  `json:"messages"`
	Streaming  bool   `json:"streaming"`
	Tokens     bool   `json:"stream_tokens"`
	Pings      bool   `json:"include_pings"`
	Background bool   `json:"background"`
	Agent      string `json:"agent_id,omitempty"`
}

type userMessage struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content any    `json:"content"`
	Otid    string `json:"otid"`
}

type approvalMessage struct {
	Type      string     `json:"type"`
	Approvals []approval `json:"approvals,omitempty"`
	// Request and Approve are the older form, by which all calls of a message are answered at once.
	Request string `json:"approval_request_id,omitempty"`
	Approve *bool  `json:"approve,omitempty"`
	Otid    string `json:"otid"`
}

type approval struct {
	Type    string `json:"type"`
	Call    string `json:"tool_call_id"`
	Approve bool   `json:"approve"`
	Reason  string `json:"reason,omitempty"`
}

// otid returns the id of the turn's n-th answer to approvals, the same over restarts: the server tells a repetition by it, as it does
// by the id of a message (see clientID).
func otid(in agent.Input, n int) string { return clientID(in, fmt.Sprint("approval-", n)) }

// step is a request whose answer is a stream of the turn.
type step func(ctx context.Context) (*http.Response, error)

func (r *rest) send(t *turn, messages ...any) step {
	return func(ctx context.Context) (*http.Response, error) {
		s := t.noted().Session
		body := sending{Messages: messages, Streaming: true, Tokens: !r.cfg.Steps, Pings: true, Background: r.cfg.Background}
		if s.Conversation == own {
			body.Agent = s.Agent
		}
		if raw, err := json.Marshal(body); err == nil {
			t.out.Sent(raw)
		}
		return r.call(ctx, http.MethodPost, nil, body, "conversations", s.Conversation, "messages")
	}
}

func (r *rest) message(t *turn, content any) step {
	m := userMessage{Type: "message", Role: "user", Content: content, Otid: clientID(t.in, t.in.Message.ID)}
	return func(ctx context.Context) (*http.Response, error) {
		if calls := t.noted().Refused; len(calls) > 0 {
			return r.send(t, refusal(t, calls), m)(ctx)
		}
		res, err := r.send(t, m)(ctx)
		if pending := pendingApproval(err); pending != "" && !r.asks(t.in.Conversation) {
			return r.send(t, r.refusalOf(ctx, t, pending), m)(ctx)
		}
		return res, err
	}
}

// onward takes the run up after its last chunk.
func (r *rest) onward(t *turn) step {
	return func(ctx context.Context) (*http.Response, error) {
		run, seq := t.place()
		if seq == 0 {
			return r.fromStart(ctx, run)
		}
		return r.call(ctx, http.MethodPost, nil, streamFrom(seq), "runs", run, "stream")
	}
}

var (
	errBroken = errors.New("letta: the stream broke")
	errGap    = errors.New("letta: the server left out a piece of its run")
)

// drive makes requests and reads their streams until the turn has ended: of runs that go on after an approval, and of a run
// whose stream broke. Without a first request the turn waits for answers. onward says that it goes on with a run.
func (r *rest) drive(ctx context.Context, t *turn, next step, onward bool) error {
	run, _ := t.place()
	r.mu.Lock()
	r.live[t.in.Turn] = t
	r.mu.Unlock()
	r.remember(run, t)
	defer func() {
		r.mu.Lock()
		delete(r.live, t.in.Turn)
		r.mu.Unlock()
		if stopped(ctx) && !t.finished() && !t.leaves() {
			r.abort(ctx, t)
		}
	}()
	for breaks := 0; ; {
		var err error
		if next != nil {
			run, seq := t.cursor()
			err = r.stream(ctx, t, next, onward)
			if nowRun, now := t.cursor(); nowRun != run || now != seq {
				breaks = 0
			}
		}
		var f *failure
		switch {
		case t.finished():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, tooLarge):
			r.abort(ctx, t) // in the background it would go on, and keep the conversation busy
			return err
		case errors.Is(err, errPending):
			if next, err = r.again(ctx, t); err != nil {
				return err
			}
			onward = false
			continue
		case errors.Is(err, errGap):
			return t.lost(codeGap, "the Letta server no longer has all of what the agent said")
		case errors.Is(err, errBroken):
			if breaks++; breaks > maxCalls {
				return t.lost(codeCutShort, "the connection to the Letta server broke again and again")
			}
			if !r.cfg.Background {
				return &agent.Error{Code: codeCutShort, Message: "the connection to the Letta server broke in the middle of the answer", Retryable: true}
			}
			if onward || !t.unheard() { // else it is sent again: by its otid the server knows whether it has it
				next, onward = r.onward(t), true
			}
			if err := retry.Sleep(ctx, min(r.times.wait<<(breaks-1), r.times.dial)); err != nil {
				return err
			}
			continue
		case onward && errors.As(err, &f) && f.status != 0 && !f.retry:
			return t.lost(codeLost, "the Letta server can't go on with the run: "+f.message)
		case err != nil:
			return err
		}
		// The stream has ended at a stop reason that is not the turn's end.
		if next, onward, err = r.answers(ctx, t); err != nil {
			return err
		}
		if next == nil {
			if t.finished() {
				return nil
			}
			return &agent.Error{Code: codeCutShort, Message: "the Letta server's answer ended without an end", Retryable: true}
		}
		breaks = 0
	}
}

// answers asks for the approvals that the turn waits for, and returns the request with them, noted as sent. If another client gives
// them to the server first, it returns what resumes the turn's next run, with onward set. next is nil if the turn does not wait, or
// has ended.
func (r *rest) answers(ctx context.Context, t *turn) (next step, onward bool, err error) {
	waiting := t.waiting()
	if len(waiting) == 0 {
		return nil, false, nil
	}
	ask, cancel := context.WithCancel(ctx)
	a := newAsker()
	defer a.wait.Wait()
	defer cancel()
	pending := map[string]letta.Approval{}
	for len(t.asks) > 0 {
		<-t.asks
	}
	for _, w := range waiting {
		pending[w.Request] = w
		a.ask(ask, t, event.Request{ID: w.Request, Kind: event.RequestApproval, Tool: w.Tool})
	}
	m := &approvalMessage{Type: "approval"}
	for len(pending) > 0 {
		select {
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		case c := <-t.elsewhere:
			if !slices.ContainsFunc(waiting, func(w letta.Approval) bool { _, ok := c.answers[w.Call]; return ok }) {
				continue // to something that was asked before
			}
			next, err = r.continued(t, c)
			return next, true, err
		case answer := <-a.answers:
			w, ok := pending[answer.ID]
			if !ok {
				continue
			}
			delete(pending, answer.ID)
			m.Approvals = append(m.Approvals, approval{Type: "approval", Call: w.Call, Approve: answer.Decision == event.Approve, Reason: answer.Text})
		}
	}
	err = t.note(func() (ops []event.Event) {
		for _, ap := range m.Approvals {
			ops = append(ops, t.dec.Answered(ap.Call, ap.Approve)...)
		}
		t.dec.Continue()
		m.Otid = otid(t.in, t.st.Sent)
		t.st.Sent++
		t.st.Answer = m
		t.st.After, _ = t.dec.Cursor()
		t.st.Run = ""
		return ops
	})
	return r.send(t, m), false, err
}

// stream makes a request and reads its answer to the end of the stream.
func (r *rest) stream(ctx context.Context, t *turn, next step, onward bool) error {
	// Once the stream has ended the turn its context ends too; the server may still end the body in peace.
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	late := time.AfterFunc(r.times.abort, func() { cancel(context.Cause(ctx)) })
	late.Stop()
	defer late.Stop()
	running := ""
	if onward {
		running, _ = t.place()
	}
	t.names(running)
	defer context.AfterFunc(ctx, func() {
		switch {
		case t.finished():
		case stopped(ctx) && t.named() == "":
			// Without the connection the server would run on, and nobody would know which run to cancel. It names it at once.
			late.Reset(r.times.abort)
		default:
			cancel(context.Cause(ctx))
		}
	})()
	var res *http.Response
	err := r.retry(ctx, t.out, func() (err error) {
		t.refused = false
		t.requests(true)
		res, err = next(call)
		var f *failure
		if t.refused = errors.As(err, &f) && f.status/100 == 4; t.refused {
			t.requests(false)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	t.streams(cancel)
	defer t.streams(nil)
	stall := time.AfterFunc(r.times.stall, func() { cancel(errBroken) })
	defer stall.Stop()
	t.out.Body(letta.Dialect().Name)
	in := reader{r: r, t: t, check: onward}
	buf := make([]byte, 32<<10)
	total := 0
	for settled := false; ; {
		n, rerr := res.Body.Read(buf)
		if n > 0 {
			stall.Reset(r.times.stall)
			t.out.Received(buf[:n])
			if err := in.feed(buf[:n]); err != nil {
				return err
			}
			if ctx.Err() != nil && t.named() != "" && !t.finished() {
				return context.Cause(ctx)
			}
			if total += n; total > r.most {
				return tooLarge
			}
		}
		over := t.finished()
		if !settled && (over || t.stopSeen()) {
			settled = true
			stall.Reset(r.times.settle)
		}
		switch {
		case rerr == nil && !in.done:
		case over:
			return nil
		case in.done, t.stopSeen():
			// What ends after a stop reason has ended, though not all was said of it.
			return t.decode(dialect.Frame{Data: []byte("[DONE]")})
		case errors.Is(rerr, io.EOF):
			return fmt.Errorf("%w: it ended without its end", errBroken)
		default:
			return fmt.Errorf("%w: %w", errBroken, rerr)
		}
	}
}

// reader takes a body apart into frames.
type reader struct {
	r     *rest
	t     *turn
	sse   sse.Reader
	check bool // the first chunk follows the last one that was seen
	done  bool // [DONE] has come
}

func (in *reader) feed(b []byte) error {
	return in.sse.Feed(b, func(e sse.Event) error {
		if in.done {
			return nil // a second end, or what comes after it
		}
		if string(e.Data) == "[DONE]" {
			in.done = true
		}
		if in.t.named() == "" {
			in.name(e.Data)
			in.r.remember(in.t.named(), in.t)
		}
		if in.check {
			if err := in.follows(e.Data); err != nil {
				return err
			}
		}
		if len(in.t.noted().Refused) == 0 && pendingRun(e.Data) {
			return errPending
		}
		return in.t.decode(dialect.Frame{Event: e.Name, Data: e.Data})
	})
}

// name notes the run that a chunk is of.
func (in *reader) name(data []byte) {
	var m struct {
		Run string `json:"run_id"`
	}
	if json.Unmarshal(data, &m) == nil {
		in.t.names(m.Run)
	}
}

// invisible is how many numbers a run's stop reason, usage and end may take between two chunks.
const invisible = 3

// follows checks that nothing was left out before the first chunk of a stream that goes on.
func (in *reader) follows(data []byte) error {
	var m struct {
		Type string `json:"message_type"`
		Run  string `json:"run_id"`
		Seq  int64  `json:"seq_id"`
	}
	if json.Unmarshal(data, &m) != nil || m.Type == "ping" || m.Seq == 0 {
		return nil
	}
	in.check = false
	run, seq := in.t.place()
	if m.Run == run && m.Seq > seq+1+invisible {
		return errGap
	}
	return nil
}
