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
func (r *restAgent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	t := newTurn(in, emitter, r.dialect)
	s, err := r.session(in)
	if err != nil {
		return err
	}
	isNew := s.Conversation == ""
	for {
		if s, err = r.ensureConversation(ctx, t, s); err != nil {
			return readerError(err)
		}
		if isNew {
			if err := storeSession(ctx, emitter, s); err != nil {
				return err
			}
		}
		if err := t.update(func() []event.Event { t.saved.Session, t.saved.SendCount = s, 1; return nil }); err != nil {
			return err
		}
		content, err := content(ctx, in.Message, emitter)
		if err != nil {
			return err
		}
		err = r.runStreams(ctx, t, r.sendMessage(t, content), false)
		var f *failure
		if isNew || !errors.As(err, &f) || f.status != http.StatusNotFound || len(in.Session) == 0 {
			return readerError(err)
		}
		// The conversation is gone there: it was deleted, or the server is another one.
		emitter.Log().Info("the Letta server does not know the conversation any more; a new one is made", "conversation", s.Conversation)
		in.Session, isNew = nil, true
		if s, err = r.session(in); err != nil {
			return err
		}
	}
}

// Resume implements [agent.Resumer].
func (r *restAgent) Resume(ctx context.Context, in agent.Input, raw json.RawMessage, emitter *agent.Emitter) error {
	t := newTurn(in, emitter, r.dialect)
	if err := t.restore(raw); err != nil {
		return err
	}
	saved := t.snapshot()
	switch {
	case saved.SendCount == 0:
		return r.Run(ctx, in, emitter)
	case len(t.approvals()) > 0:
		return readerError(r.runStreams(ctx, t, nil, false))
	case !r.cfg.Background:
		return t.endLost(codeLost, "Leat was restarted while the agent answered, and the run was not one that goes on by itself")
	case saved.NextRun != "" || !t.awaitsRunOfLastSend():
		return readerError(r.runStreams(ctx, t, r.resumeRun(t), true))
	case saved.Answer != nil:
		return readerError(r.runStreams(ctx, t, r.send(t, saved.Answer), false))
	}
	// Whether it arrived is not known. A server that knows its otid goes on with the run that it began.
	content, err := content(ctx, in.Message, emitter)
	if err != nil {
		return err
	}
	return readerError(r.runStreams(ctx, t, r.sendMessage(t, content), false))
}

// sendRequest is the body of what is sent to a conversation.
type sendRequest struct {
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

// streamRequest is a request whose answer is a stream of the turn.
type streamRequest func(ctx context.Context) (*http.Response, error)

func (r *restAgent) send(t *turn, messages ...any) streamRequest {
	return func(ctx context.Context) (*http.Response, error) {
		s := t.snapshot().Session
		body := sendRequest{Messages: messages, Streaming: true, Tokens: !r.cfg.Steps, Pings: true, Background: r.cfg.Background}
		if s.Conversation == ownConversation {
			body.Agent = s.Agent
		}
		if raw, err := json.Marshal(body); err == nil {
			t.emitter.Sent(raw)
		}
		return r.call(ctx, http.MethodPost, nil, body, "conversations", s.Conversation, "messages")
	}
}

func (r *restAgent) sendMessage(t *turn, content any) streamRequest {
	m := userMessage{Type: "message", Role: "user", Content: content, Otid: clientID(t.in, t.in.Message.ID)}
	return func(ctx context.Context) (*http.Response, error) {
		if calls := t.snapshot().RefusedCalls; len(calls) > 0 {
			return r.send(t, refusal(t, calls), m)(ctx)
		}
		res, err := r.send(t, m)(ctx)
		if pending := pendingApproval(err); pending != "" && !r.waitsForUser(t.in.Conversation) {
			return r.send(t, r.refusalOf(ctx, t, pending), m)(ctx)
		}
		return res, err
	}
}

// resumeRun takes the run up after its last chunk.
func (r *restAgent) resumeRun(t *turn) streamRequest {
	return func(ctx context.Context) (*http.Response, error) {
		run, seq := t.position()
		if seq == 0 {
			return r.readRun(ctx, run)
		}
		return r.call(ctx, http.MethodPost, nil, streamFrom(seq), "runs", run, "stream")
	}
}

var (
	errBroken = errors.New("letta: the stream broke")
	errGap    = errors.New("letta: the server left out a piece of its run")
)

// runStreams makes requests and reads their streams until the turn has ended: of runs that go on after an approval, and of a run
// whose stream broke. Without a first request the turn waits for answers. onward says that it goes on with a run.
func (r *restAgent) runStreams(ctx context.Context, t *turn, next streamRequest, resumes bool) error {
	run, _ := t.position()
	r.mu.Lock()
	r.activeTurns[t.in.Turn] = t
	r.mu.Unlock()
	r.setTurnOfRun(run, t)
	defer func() {
		r.mu.Lock()
		delete(r.activeTurns, t.in.Turn)
		r.mu.Unlock()
		if isStopped(ctx) && !t.isFinished() && !t.leavesRun() {
			r.abort(ctx, t)
		}
	}()
	for breaks := 0; ; {
		var err error
		if next != nil {
			run, seq := t.cursor()
			err = r.stream(ctx, t, next, resumes)
			if nowRun, nowSeq := t.cursor(); nowRun != run || nowSeq != seq {
				breaks = 0
			}
		}
		var f *failure
		switch {
		case t.isFinished():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, tooLarge):
			r.abort(ctx, t) // in the background it would go on, and keep the conversation busy
			return err
		case errors.Is(err, errPending):
			if next, err = r.resendWithRefusal(ctx, t); err != nil {
				return err
			}
			resumes = false
			continue
		case errors.Is(err, errGap):
			return t.endLost(codeGap, "the Letta server no longer has all of what the agent said")
		case errors.Is(err, errBroken):
			if breaks++; breaks > maxCalls {
				return t.endLost(codeCutShort, "the connection to the Letta server broke again and again")
			}
			if !r.cfg.Background {
				return &agent.Error{Code: codeCutShort, Message: "the connection to the Letta server broke in the middle of the answer", Retryable: true}
			}
			if resumes || !t.awaitsRunOfLastSend() { // else it is sent again: by its otid the server knows whether it has it
				next, resumes = r.resumeRun(t), true
			}
			if err := retry.Sleep(ctx, min(r.times.retryDelay<<(breaks-1), r.times.dial)); err != nil {
				return err
			}
			continue
		case resumes && errors.As(err, &f) && f.status != 0 && !f.retryable:
			return t.endLost(codeLost, "the Letta server can't go on with the run: "+f.message)
		case err != nil:
			return err
		}
		// The stream has ended at a stop reason that is not the turn's end.
		if next, resumes, err = r.awaitAnswers(ctx, t); err != nil {
			return err
		}
		if next == nil {
			if t.isFinished() {
				return nil
			}
			return &agent.Error{Code: codeCutShort, Message: "the Letta server's answer ended without an end", Retryable: true}
		}
		breaks = 0
	}
}

// awaitAnswers asks for the approvals that the turn waits for, and returns the request with them, noted as sent. If another client gives
// them to the server first, it returns what resumes the turn's next run, with onward set. next is nil if the turn does not wait, or
// has ended.
func (r *restAgent) awaitAnswers(ctx context.Context, t *turn) (next streamRequest, resumes bool, err error) {
	approvals := t.approvals()
	if len(approvals) == 0 {
		return nil, false, nil
	}
	ask, cancel := context.WithCancel(ctx)
	a := newAsker()
	defer a.tasks.Wait()
	defer cancel()
	pending := map[string]letta.Approval{}
	for len(t.requests) > 0 {
		<-t.requests
	}
	for _, w := range approvals {
		pending[w.Request] = w
		a.ask(ask, t, event.Request{ID: w.Request, Kind: event.RequestApproval, Tool: w.Tool})
	}
	m := &approvalMessage{Type: "approval"}
	for len(pending) > 0 {
		select {
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		case c := <-t.otherAnswers:
			if !slices.ContainsFunc(approvals, func(w letta.Approval) bool { _, ok := c.decisions[w.Call]; return ok }) {
				continue // to something that was asked before
			}
			next, err = r.continueRun(t, c)
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
	err = t.update(func() (ops []event.Event) {
		for _, ap := range m.Approvals {
			ops = append(ops, t.lettaDecoder.RecordAnswer(ap.Call, ap.Approve)...)
		}
		t.lettaDecoder.ContinueTurn()
		m.Otid = otid(t.in, t.saved.SendCount)
		t.saved.SendCount++
		t.saved.Answer = m
		t.saved.AfterRun, _ = t.lettaDecoder.Cursor()
		t.saved.NextRun = ""
		return ops
	})
	return r.send(t, m), false, err
}

// stream makes a request and reads its answer to the end of the stream.
func (r *restAgent) stream(ctx context.Context, t *turn, send streamRequest, resumes bool) error {
	// Once the stream has ended the turn its context ends too; the server may still end the body in peace.
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	lateCancel := time.AfterFunc(r.times.abort, func() { cancel(context.Cause(ctx)) })
	lateCancel.Stop()
	defer lateCancel.Stop()
	run := ""
	if resumes {
		run, _ = t.position()
	}
	t.setStreamRun(run)
	defer context.AfterFunc(ctx, func() {
		switch {
		case t.isFinished():
		case isStopped(ctx) && t.currentRun() == "":
			// Without the connection the server would run on, and nobody would know which run to cancel. It names it at once.
			lateCancel.Reset(r.times.abort)
		default:
			cancel(context.Cause(ctx))
		}
	})()
	var res *http.Response
	err := r.retry(ctx, t.emitter, func() (err error) {
		t.isRejected = false
		t.setAwaitsRun(true)
		res, err = send(call)
		var f *failure
		if t.isRejected = errors.As(err, &f) && f.status/100 == 4; t.isRejected {
			t.setAwaitsRun(false)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	t.setStreamCancel(cancel)
	defer t.setStreamCancel(nil)
	stall := time.AfterFunc(r.times.stall, func() { cancel(errBroken) })
	defer stall.Stop()
	t.emitter.Body(letta.Dialect().Name)
	chunks := chunkReader{agent: r, turn: t, checkGap: resumes}
	buf := make([]byte, 32<<10)
	total := 0
	for hasEnd := false; ; {
		n, rerr := res.Body.Read(buf)
		if n > 0 {
			stall.Reset(r.times.stall)
			t.emitter.Received(buf[:n])
			if err := chunks.feed(buf[:n]); err != nil {
				return err
			}
			if ctx.Err() != nil && t.currentRun() != "" && !t.isFinished() {
				return context.Cause(ctx)
			}
			if total += n; total > r.maxStream {
				return tooLarge
			}
		}
		isFinished := t.isFinished()
		if !hasEnd && (isFinished || t.hasStopReason()) {
			hasEnd = true
			stall.Reset(r.times.finish)
		}
		switch {
		case rerr == nil && !chunks.sawDone:
		case isFinished:
			return nil
		case chunks.sawDone, t.hasStopReason():
			// What ends after a stop reason has ended, though not all was said of it.
			return t.decode(dialect.Frame{Data: []byte("[DONE]")})
		case errors.Is(rerr, io.EOF):
			return fmt.Errorf("%w: it ended without its end", errBroken)
		default:
			return fmt.Errorf("%w: %w", errBroken, rerr)
		}
	}
}

// chunkReader takes a body apart into frames.
type chunkReader struct {
	agent    *restAgent
	turn     *turn
	sse      sse.Reader
	checkGap bool // the first chunk follows the last one that was seen
	sawDone  bool // [DONE] has come
}

func (in *chunkReader) feed(b []byte) error {
	return in.sse.Feed(b, func(e sse.Event) error {
		if in.sawDone {
			return nil // a second end, or what comes after it
		}
		if string(e.Data) == "[DONE]" {
			in.sawDone = true
		}
		if in.turn.currentRun() == "" {
			in.noteRun(e.Data)
			in.agent.setTurnOfRun(in.turn.currentRun(), in.turn)
		}
		if in.checkGap {
			if err := in.checkFirst(e.Data); err != nil {
				return err
			}
		}
		if len(in.turn.snapshot().RefusedCalls) == 0 && pendingRun(e.Data) {
			return errPending
		}
		return in.turn.decode(dialect.Frame{Event: e.Name, Data: e.Data})
	})
}

// noteRun notes the run that a chunk is of.
func (in *chunkReader) noteRun(data []byte) {
	var m struct {
		Run string `json:"run_id"`
	}
	if json.Unmarshal(data, &m) == nil {
		in.turn.setStreamRun(m.Run)
	}
}

// hiddenSeqs is how many numbers a run's stop reason, usage and end may take between two chunks.
const hiddenSeqs = 3

// checkFirst checks that nothing was left out before the first chunk of a stream that goes on.
func (in *chunkReader) checkFirst(data []byte) error {
	var m struct {
		Type string `json:"message_type"`
		Run  string `json:"run_id"`
		Seq  int64  `json:"seq_id"`
	}
	if json.Unmarshal(data, &m) != nil || m.Type == "ping" || m.Seq == 0 {
		return nil
	}
	in.checkGap = false
	run, seq := in.turn.position()
	if m.Run == run && m.Seq > seq+1+hiddenSeqs {
		return errGap
	}
	return nil
}
