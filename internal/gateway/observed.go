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

// observedTurn is the value of the key that marks an unfinished turn as observed.
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

// lookUpObserved returns what is stored of an observed turn; ok is false if the turn is not an observed one.
func lookUpObserved(ctx context.Context, j journal.Journal, turn string) (m observedTurn, ok bool, err error) {
	v, err := j.Get(ctx, journalkey.TurnObserved(turn))
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

// running returns the turns that run in this process: the one that the queue has started, and the observed ones.
func (w *writer) running() []*turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*turn, 0, 1+len(w.observed))
	if w.current != nil {
		all = append(all, w.current)
	}
	for _, tn := range w.observed {
		all = append(all, tn)
	}
	return all
}

// turnOf returns the running turn with an id, or that around a turn with the id; nil if it doesn't run in this process. It is called
// by the writer's goroutine only.
func (w *writer) turnOf(id string) *turn {
	if tn := w.observed[id]; tn != nil {
		return tn
	}
	if tn := w.current; tn != nil && (tn.id == id || tn.children[id]) {
		return tn
	}
	for _, tn := range w.observed {
		if tn.children[id] {
			return tn
		}
	}
	return nil
}

// inQueue returns the open turns that wait in the queue or were started from it, with those inside them. It is called by the writer's
// goroutine only.
func (w *writer) inQueue(open []string) []string {
	if len(w.observed) == 0 {
		return open
	}
	return slices.DeleteFunc(slices.Clone(open), func(id string) bool {
		tn := w.turnOf(id)
		return tn != nil && tn.observed
	})
}

func (w *writer) unobserve(tn *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.observed[tn.id] == tn {
		delete(w.observed, tn.id)
	}
}

// host is on whose behalf observed turns run: the conversation's owner.
func (w *writer) host() agent.Principal {
	return agent.Principal{Tenant: w.summary.Tenant, Subject: w.summary.Owner}
}

// addRefused adds a live run that is one too many as a turn that has failed, so that readers see what is missing.
func (w sessionEntries) addRefused(t *tx, r resolved, name string) {
	r.ops = []event.Event{{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Failed, Error: &event.Error{
		Code: codeRuns, Message: fmt.Sprintf("%d runs that the agent's other clients began are in progress in this conversation, which is the limit", maxObserved),
	}}}}
	w.addWhole(t, r, name)
	t.then(func() {
		w.log.Warn("run not shown: too many runs of the agent's other clients are in progress in this conversation", "turn", r.id, "agent", name, "limit", maxObserved)
	})
}

// startObserved starts the run of an observed turn once its start is durable.
func (w *writer) startObserved(t *tx, tn *turn, key, answers string, state json.RawMessage) {
	in := w.observedInput(tn.id, key)
	t.then(func() {
		in.Session = w.session(tn.name)
		w.feed.View(func(tr *transcript.Transcript) {
			if m := tr.Message(answers); m != nil {
				in.Message = message(m)
			}
		})
		tn.start(runStart{Mode: startObserve, Input: in, State: state})
	})
}

// reobserve resumes an observed turn that was open when the gateway stopped. It returns false if the agent can't.
func (w recovery) reobserve(t *tx, open transcript.Turn, m observedTurn, inside []string) (bool, error) {
	a, _ := w.g.agent(open.Agent, w.host())
	if _, ok := a.Agent.(agent.Follower); !ok {
		return false, nil
	}
	state, err := w.g.journal.Get(w.g.life, journalkey.TurnState(open.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("state of turn %s: %w", open.ID, err)
	}
	tn := w.newTurn(open.ID, open.Agent, a, w.host())
	tn.observed = true
	if ok, err := w.restore(t, tn, open, inside); !ok || err != nil {
		return false, err
	}
	tn.prepare(true, false)
	w.startObserved(t, tn, m.Key, open.Answers, state)
	t.then(func() {
		if err := tn.redeliverAnswers(w.g.life); err != nil {
			w.log.Error("agent not told of answers", "turn", open.ID, "error", err)
		}
	})
	return true, nil
}

func (w *writer) observedInput(turn, key string) agent.Input {
	return agent.Input{Conversation: w.id, Turn: turn, Key: key, Principal: w.host(), Metadata: w.summary.Metadata}
}
