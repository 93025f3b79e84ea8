package gateway

import (
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/transcript"
)

// An observed turn is a run that its upstream began by itself, such as another client's (see [agent.Run]). It does not wait in the
// conversation's queue and nothing waits for it, so any number of them overlap each other and the turn that the queue has started.
// A durable mark tells it from that turn.

// startObserved starts the run of an observed turn once its start is durable. key is the key of the entry that the turn was made from,
// by which the agent finds the run.
func (w *writer) startObserved(t *tx, tn *turn, key, answers string, state json.RawMessage) {
	in := agent.Input{Conversation: w.id, Turn: tn.id, Key: key, Principal: w.owner, Metadata: w.summary.Metadata}
	t.afterCommit(func() {
		in.Session = w.session(tn.name)
		w.feed.View(func(tr *transcript.Transcript) {
			if m := tr.Message(answers); m != nil {
				in.Message = message(m)
			}
		})
		tn.start(runStart{Mode: startObserve, Input: in, State: state})
	})
}
