// The values of the keys of a turn that a later process needs: on whose behalf it runs, and what it observes.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// turnPrincipal returns the principal on whose behalf an unfinished turn runs or waits. The key is deleted when the
// turn ends, and then the error is [journal.ErrNotFound].
func turnPrincipal(ctx context.Context, j Journal, turn string) (p agent.Principal, err error) {
	v, err := j.Get(ctx, journalkey.TurnPrincipal(turn))
	if err == nil {
		err = json.Unmarshal(v, &p)
	}
	return p, err
}

// isPushed reports whether an agent has left an unfinished turn to a producer.
func isPushed(ctx context.Context, j Journal, turn string) (bool, error) {
	_, err := j.Get(ctx, journalkey.TurnPushed(turn))
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// observedTurn is the value of the key that marks an unfinished turn as observed.
type observedTurn struct {
	Key string `json:"key"` // of its entry
}

func (m observedTurn) json() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		return nil // cannot happen: a string has a JSON form
	}
	return b
}

// lookUpObserved returns the mark of an observed turn. ok is false if the turn is not an observed one.
func lookUpObserved(ctx context.Context, j Journal, turn string) (m observedTurn, ok bool, err error) {
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

// storedAnswer is the value of an answer's key. It is stored in the commit of the answer and changed when the agent
// has accepted it.
type storedAnswer struct {
	event.Answer
	// IsDelivered is true once the agent has accepted the answer.
	IsDelivered bool `json:"told,omitempty"`
}

// undeliveredAnswers returns the answers of a turn that its agent has not accepted. An answer that can't be read is
// an error, since an agent would otherwise wait forever.
func undeliveredAnswers(ctx context.Context, j Journal, turn string) ([]event.Answer, error) {
	keys, err := j.Keys(ctx, journalkey.Answer(turn, ""))
	if err != nil {
		return nil, JournalError("list answers", err)
	}
	var answers []event.Answer
	for _, kv := range keys {
		var a storedAnswer
		if err := json.Unmarshal(kv.Value, &a); err != nil {
			return nil, fmt.Errorf("gateway: stored answer %s: %w", kv.Key, err)
		}
		if !a.IsDelivered {
			answers = append(answers, a.Answer)
		}
	}
	return answers, nil
}
