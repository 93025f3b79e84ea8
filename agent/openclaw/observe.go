// Runs that other clients began are observed as turns of the conversation. This file decides who shows a run: a turn of Leat, or a
// watch.

package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/agent"
)

// Observe implements [agent.Follower]. It follows a run that Follow reported as in progress, like a turn of Leat, but without
// sending anything. If a user stops the turn, the run is aborted upstream. state is the one that gatherer.addRun has recorded, or
// a later state of the same turn after a restart of Leat. An observed turn doesn't occupy its session.
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
		// ctx is done, but the abort must still be sent; requestLimit bounds it.
		if err := a.Stop(context.WithoutCancel(ctx), in); err != nil {
			t.emitter.Log().Warn("could not stop a run of another client", "run", t.firstRun(), "error", err)
		}
	}
	return err
}

// registerObserved routes the frames of the turn's runs to it, beginning with those that are buffered.
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

// offerToWatches shows a frame to all watches and reports whether one follows its session. Frames of a followed run that no
// turn shows yet are buffered for Observe. The caller holds a.mu.
func (a *gatewayAgent) offerToWatches(raw []byte, f *runFrame) (isFollowed bool) {
	for w := range a.watches {
		if w.observe(f) {
			isFollowed = true
		}
	}
	if !isFollowed || isInjected(f.Run) || a.runs[f.Run] != nil || a.observers[f.Run] != nil {
		return isFollowed
	}
	// Frames are buffered because a run may have sent more before the watch has read the history and Leat calls Observe.
	if f.isEnd() {
		delete(a.buffered, f.Run) // its history is complete now
		return true
	}
	if frames, ok := a.buffered[f.Run]; len(frames) < maxBuffer && (ok || len(a.buffered) < maxBuffered) {
		a.buffered[f.Run] = append(frames, item{kind: itemFrame, raw: raw, run: *f})
	}
	return true
}

// ownsRun reports whether a run answers a turn that Leat started in the conversation.
func (a *gatewayAgent) ownsRun(conversation, run string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if conversationID, ok := a.adoptions[run]; ok && conversationID == conversation {
		return true
	}
	t := a.runs[run]
	return t != nil && t.in.Conversation == conversation
}

// maxAdoptions is how many adopted runs are remembered. They only have to outlast the next reads of the history, which would show them
// a second time.
const maxAdoptions = 4096

// recordAdoption remembers that a run answers a turn of the conversation, although its id doesn't show it. The caller holds
// a.mu.
func (a *gatewayAgent) recordAdoption(run, conversation string) {
	if len(a.adoptions) >= maxAdoptions {
		clear(a.adoptions)
	}
	a.adoptions[run] = conversation
}
