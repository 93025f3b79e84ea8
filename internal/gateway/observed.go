package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// An observed turn is a run that its upstream began by itself, such as another client's (see [agent.Run]). It does not wait in the
// conversation's queue and nothing waits for it, so any number of them overlap each other and the turn that the queue has started.
// A durable mark tells it from that turn.

// maxObserved bounds the observed turns of one conversation that are unfinished at the same time. Each costs a goroutine and what its
// agent needs to read the run.
const maxObserved = 64

// mark is what is stored of an observed turn as long as it is unfinished.
type observedTurn struct {
	Key string `json:"key"` // of its entry
}

func (m observedTurn) json() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		return nil // a string has a JSON form
	}
	return b
}

// marked returns the mark of a turn; ok is false if it is not an observed one.
func (g *Gateway) observedTurn(ctx context.Context, turn string) (m observedTurn, ok bool, err error) {
	v, err := g.journal.Get(ctx, journalkey.TurnObserved(turn))
	if errors.Is(err, journal.ErrNotFound) {
		return m, false, nil
	}
	if err == nil {
		err = json.Unmarshal(v, &m)
	}
	if err != nil {
		return m, false, fmt.Errorf("mark of turn %s: %w", turn, err)
	}
	return m, true, nil
}

// runs returns the runs of this process: the one that the queue has started, and the observed ones.
func (w *writer) runs() []*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*run, 0, 1+len(w.observed))
	if w.current != nil {
		all = append(all, w.current)
	}
	for _, r := range w.observed {
		all = append(all, r)
	}
	return all
}

// runOf returns the run to which a turn belongs, by its own id or by that of a turn inside it; nil if it does not run here. It is the
// writer's own.
func (w *writer) runOf(turn string) *run {
	if r := w.observed[turn]; r != nil {
		return r
	}
	if r := w.current; r != nil && (r.id == turn || r.children[turn]) {
		return r
	}
	for _, r := range w.observed {
		if r.children[turn] {
			return r
		}
	}
	return nil
}

// inQueue returns those of the open turns that wait in the queue or were started from it, with those inside them. It is the writer's
// own.
func (w *writer) inQueue(open []string) []string {
	if len(w.observed) == 0 {
		return open
	}
	return slices.DeleteFunc(slices.Clone(open), func(turn string) bool {
		r := w.runOf(turn)
		return r != nil && r.observed
	})
}

// observe adds a run to the observed ones. It is the writer's own, as unobserve is.
func (w *writer) observe(r *run) {
	r.observed = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.observed == nil {
		w.observed = map[string]*run{}
	}
	w.observed[r.id] = r
}

func (w *writer) unobserve(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.observed[r.id] == r {
		delete(w.observed, r.id)
	}
}

// host is on whose behalf observed turns run: the conversation's owner.
func (w *writer) host() agent.Principal {
	return agent.Principal{Tenant: w.summary.Tenant, Subject: w.summary.Owner}
}

// addRefused adds a live run that is one too many as a turn that has failed, so that readers see what is missing.
func (w *writer) addRefused(t *tx, r resolved, name string) {
	r.ops = []event.Event{{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Failed, Error: &event.Error{
		Code: codeRuns, Message: fmt.Sprintf("%d runs that the agent's other clients began are in progress in this conversation, which is the limit", maxObserved),
	}}}}
	w.addWhole(t, r, name)
	t.then(func() {
		w.log.Warn("run not shown: too many runs of the agent's other clients are in progress in this conversation", "turn", r.id, "agent", name, "limit", maxObserved)
	})
}

// observing launches the run of an observed turn once its commit is shown.
func (w *writer) observing(t *tx, r *run, up agent.Follower, answers string, state json.RawMessage) {
	t.then(func() {
		r.input.Session = w.session(r.name)
		w.feed.View(func(tr *transcript.Transcript) {
			if m := tr.Message(answers); m != nil {
				r.input.Message = message(m)
			}
		})
		r.launch(func(ctx context.Context) error { return up.Observe(ctx, r.currentInput(), state, r.out) })
	})
}

// reobserve takes up an observed turn that was open when the gateway stopped; false if nothing can.
func (w *writer) reobserve(t *tx, turn transcript.Turn, m observedTurn, inside []string) (bool, error) {
	a, _ := w.g.agent(turn.Agent, w.host())
	up, ok := a.Agent.(agent.Follower)
	if !ok {
		return false, nil
	}
	state, err := w.g.journal.Get(w.g.life, journalkey.TurnState(turn.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("state of turn %s: %w", turn.ID, err)
	}
	r := w.newRun(turn.ID, turn.Agent, a, w.observedInput(turn.ID, m.Key))
	if ok, err := w.restore(t, r, turn, inside); !ok || err != nil {
		return false, err
	}
	w.observe(r)
	w.observer.begin(r, true)
	w.observing(t, r, up, turn.Answers, state)
	t.then(func() {
		if err := r.redeliverAnswers(w.g.life); err != nil {
			w.log.Error("agent not told of answers", "turn", turn.ID, "error", err)
		}
	})
	return true, nil
}

func (w *writer) observedInput(turn, key string) agent.Input {
	return agent.Input{Conversation: w.id, Turn: turn, Key: key, Principal: w.host(), Metadata: w.summary.Metadata}
}
