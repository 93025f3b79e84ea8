package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
)

// storedAnswer is the value of an answer's key.
type storedAnswer struct {
	event.Answer
	// IsDelivered is true once the agent has accepted the answer.
	IsDelivered bool `json:"told,omitempty"`
}

// undeliveredAnswers returns the answers of a turn that its agent has not accepted.
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
