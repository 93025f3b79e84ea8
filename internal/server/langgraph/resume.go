// Answers to questions, which begin a run that continues a turn.

package langgraph

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// resume answers questions. The value is an object with an answer for each interrupt's id, or the answer to the only question.
func (s *surface) resume(ctx context.Context, p gateway.Principal, conversation string, value json.RawMessage) (ref runRef, err error) {
	open, err := s.openRequests(ctx, p, conversation)
	if err != nil {
		return ref, err
	}
	answers := map[string]json.RawMessage{}
	_ = json.Unmarshal(value, &answers) // else it is the answer itself
	for id := range answers {
		if _, isOpen := open[id]; !isOpen {
			answers = nil // an object that is the answer itself
			break
		}
	}
	if len(answers) == 0 {
		if len(open) > 1 {
			return ref, server.Invalid("several questions wait for an answer; resume with an object of answers by the ids of their interrupts")
		}
		answers = map[string]json.RawMessage{}
		for id := range open {
			answers[id] = value
		}
	}
	if len(answers) == 0 {
		return ref, errNoInterrupt
	}
	return s.answer(ctx, p, conversation, open, answers)
}

// errNoInterrupt is the error of an answer to a question that doesn't wait.
var errNoInterrupt = server.Errorf(http.StatusConflict, server.ReasonTurnOver, "no such question waits for an answer in this thread")

// openRequest is a question that waits for an answer.
type openRequest struct {
	turn     string
	firstSeq int64 // of the turn
	event.Request
}

// openRequests returns the questions of a conversation by the ids of their interrupts.
func (s *surface) openRequests(ctx context.Context, p gateway.Principal, conversation string) (open map[string]openRequest, err error) {
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		open = map[string]openRequest{}
		for _, turn := range t.Turns {
			for _, r := range turn.Requests {
				if turn.Independent() {
					open[interruptID(turn.ID, &r.Request)] = openRequest{turn.ID, turn.FirstSeq, r.Request}
				}
			}
		}
		return true
	})
	return open, err
}

// answer answers questions, and returns the run that the last answer begins. All answers are checked before the first one is given.
func (s *surface) answer(ctx context.Context, p gateway.Principal, conversation string, open map[string]openRequest, answers map[string]json.RawMessage) (ref runRef, err error) {
	commands := map[string]gateway.Command{}
	for id, value := range answers {
		r, isOpen := open[id]
		if !isOpen {
			return ref, errNoInterrupt
		}
		c, err := answerTo(r.turn, &r.Request, value)
		if err != nil {
			return ref, err
		}
		c.Type, c.Turn, c.Request = gateway.CommandAnswer, r.turn, r.ID
		commands[id] = c
	}
	for id, c := range commands {
		ack, err := server.Do(ctx, s.gw, p, conversation, c)
		if err != nil {
			return ref, err
		}
		ref = runRef{conversation, c.Turn, ack.Seq - open[id].firstSeq}
	}
	return ref, nil
}
