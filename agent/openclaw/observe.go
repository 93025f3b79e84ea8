package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/agent"
)

// Observe implements [agent.Follower]: a run that another client began is followed as those of a turn are.
func (a *gatewayAgent) Observe(ctx context.Context, in agent.Input, state json.RawMessage, emitter *agent.Emitter) error {
	t := a.newTurn(in, emitter)
	t.isObserved = true
	if err := t.resume(state); err != nil {
		return err
	}
	if t.st.Session == "" || len(t.st.Runs) == 0 {
		return fmt.Errorf("openclaw: run %s: its state names no session", in.Key)
	}
	a.ensureStarted()
	t.lastHeard = time.Now()
	conn, err := a.awaitConnection(ctx, returnLimit, nil)
	if err != nil {
		return a.runError(ctx, err)
	}
	t.session = t.st.Session
	a.registerObserved(t)
	err = a.sustain(ctx, t, conn, time.Now())
	if errors.Is(context.Cause(ctx), agent.ErrTurnOver) {
		// The context is over; a request has a limit of its own.
		if err := a.Stop(context.WithoutCancel(ctx), in); err != nil {
			t.emitter.Log().Warn("a run of another client could not be stopped", "run", t.firstRun(), "error", err)
		}
	}
	return err
}

// registerObserved makes frames of the turn's runs find it, those included that came before.
func (a *gatewayAgent) registerObserved(t *turn) {
	a.mu.Lock()
	a.turns[t.in.Turn] = t
	t.trackBeginning()
	var buffered []item
	for _, r := range t.st.Runs {
		a.observers[r.ID] = append(a.observers[r.ID], t)
		buffered = append(buffered, a.buffered[r.ID]...)
		delete(a.buffered, r.ID)
	}
	a.mu.Unlock()
	for _, i := range buffered {
		t.post(i)
	}
}

// outside takes a frame of a run: the sessions that are followed may have it, if only another conversation's. a.mu is held.
func (a *gatewayAgent) offerToWatches(raw []byte, f *runFrame) (isFollowed bool) {
	for w := range a.watches {
		if w.observe(f) {
			isFollowed = true
		}
	}
	if !isFollowed || isInjected(f.Run) || a.runs[f.Run] != nil || a.observers[f.Run] != nil {
		return isFollowed
	}
	if f.isEnd() {
		delete(a.buffered, f.Run) // its history has all of it
		return true
	}
	if frames, ok := a.buffered[f.Run]; len(frames) < maxBuffer && (ok || len(a.buffered) < maxBuffered) {
		a.buffered[f.Run] = append(frames, item{kind: itemFrame, raw: raw, run: *f})
	}
	return true
}

// owns reports whether a run answers a turn of the conversation that the gateway has started.
func (a *gatewayAgent) ownsRun(conversation, run string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if conversationID, ok := a.adoptions[run]; ok && conversationID == conversation {
		return true
	}
	t := a.runs[run]
	return t != nil && t.in.Conversation == conversation
}

// maxAdopted bounds how many adopted runs are remembered, so that a history that is read soon after does not show them again.
const maxAdoptions = 4096

// remember takes note of a run that answers a turn, though its id does not say so. a.mu is held.
func (a *gatewayAgent) recordAdoption(run, conversation string) {
	if len(a.adoptions) >= maxAdoptions {
		clear(a.adoptions)
	}
	a.adoptions[run] = conversation
}
