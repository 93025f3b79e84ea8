// Run and Resume over the REST API: the life of one turn over as many streams as it takes.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
)

// Run implements [agent.Agent]. It creates the conversation if necessary, stores its session, stores that the message will be
// sent, and sends it. If the server has lost the conversation, Run creates a new one and starts over: the user gets an answer,
// but the agent's memory of the conversation is gone.
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
		// The conversation was deleted, or the target is another server now.
		emitter.Log().Info("the Letta server doesn't know the conversation any more; creating a new one", "conversation", s.Conversation)
		in.Session, isNew = nil, true
		if s, err = r.session(in); err != nil {
			return err
		}
	}
}

// Resume implements [agent.Resumer]. It continues where the state says: it starts over if nothing was sent, waits for open
// approvals, or resumes the stream after its last chunk. If the approvals or the message may not have arrived it sends them
// again; the server recognizes a repetition by its otid and continues the run that it has started. A run that wasn't started in
// background can't be resumed, so its turn is lost.
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
		return t.endLost(codeLost, "Leat was restarted while the agent answered, and its run was not a background run, so it can't be resumed")
	case saved.NextRun != "" || !t.awaitsRunOfLastSend():
		return readerError(r.runStreams(ctx, t, r.resumeRun(t), true))
	case saved.Answer != nil:
		return readerError(r.runStreams(ctx, t, r.send(t, saved.Answer), false))
	}

	content, err := content(ctx, in.Message, emitter)
	if err != nil {
		return err
	}
	return readerError(r.runStreams(ctx, t, r.sendMessage(t, content), false))
}

var (
	// errBroken says that a stream or connection ended before the turn did.
	errBroken = errors.New("letta: the stream broke")
	// errGap says that a resumed stream doesn't continue at the last chunk.
	errGap = errors.New("letta: the server left out a part of the run")
)

// runStreams sends requests and reads their streams until the turn has ended. next is the first request; if it is nil the turn
// waits for approvals. resumes says that next resumes a run, so that its first chunk has to follow the last one that was
// decoded.
//
// After a stream it does one of four things: it resumes a stream that broke, up to maxCalls times in a row without a new chunk;
// it sends the message again with a denial of open approvals; it asks users for approvals and sends them; or it ends the turn.
// A turn that a user has stopped is cancelled at the server.
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
			r.abort(ctx, t) // otherwise the background run would continue, and keep the conversation busy
			return err
		case errors.Is(err, errPending):
			if next, err = r.resendWithRefusal(ctx, t); err != nil {
				return err
			}
			resumes = false
			continue
		case errors.Is(err, errGap):
			return t.endLost(codeGap, "the Letta server has dropped a part of the answer")
		case errors.Is(err, errBroken):
			if breaks++; breaks > maxCalls {
				return t.endLost(codeCutShort, "the connection to the Letta server broke repeatedly")
			}
			if !r.cfg.Background {
				return &agent.Error{Code: codeCutShort, Message: "the connection to the Letta server broke in the middle of the answer", Retryable: true}
			}
			if resumes || !t.awaitsRunOfLastSend() { // if not, the request is sent again; the server recognizes its otid
				next, resumes = r.resumeRun(t), true
			}
			if err := retry.Sleep(ctx, min(r.times.retryDelay<<(breaks-1), r.times.dial)); err != nil {
				return err
			}
			continue
		case resumes && errors.As(err, &f) && f.status != 0 && !f.retryable:
			return t.endLost(codeLost, "the Letta server can't resume the run: "+f.message)
		case err != nil:
			return err
		}
		// The stream has ended with a stop reason that doesn't end the turn.
		if next, resumes, err = r.awaitAnswers(ctx, t); err != nil {
			return err
		}
		if next == nil {
			if t.isFinished() {
				return nil
			}
			return &agent.Error{Code: codeCutShort, Message: "the Letta server's stream ended before the answer was complete", Retryable: true}
		}
		breaks = 0
	}
}

// awaitAnswers shows the approvals that the turn waits for, collects users' answers, stores them, and returns the request that
// sends them. If another client answers first at the server, it returns the request that reads the run which that has started,
// with resumes set. next is nil if the turn waits for nothing, or has ended.
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
	// The decoder has queued the same requests while it read the stream; approvals has all of them.
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
				continue // an answer to an earlier request
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
	// The approvals are stored before they are sent, together with the newest run. After a crash Resume sends them again unless a run
	// has followed.
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
