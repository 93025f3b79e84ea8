// Answers of clients to the calls that represent requests.

package letta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// approval is the answer to a call: a decision, or the result of a tool that the client has run.
type approval struct {
	Type    string          `json:"type"` // approval or tool
	CallID  string          `json:"tool_call_id"`
	Approve bool            `json:"approve"`
	Reason  string          `json:"reason"`
	Return  json.RawMessage `json:"tool_return"`
	Status  string          `json:"status"`
}

// answeredRequest is a request that a client answers.
type answeredRequest struct {
	turn    string
	request event.Request
	call    *call
	answer  *approval
	after   int64 // seq_id of the last frame of the request
	isOpen  bool
}

// answer passes on answers to calls, and finds where the response to them continues. An answer that another client has given already counts: this client
// then gets what the turn did since.
func (s *surface) answer(ctx context.Context, p gateway.Principal, m *sentMessage, to *target) error {
	if len(m.Approvals) == 0 && m.Approve != nil {
		m.Approvals = []approval{{Type: "approval", CallID: m.Request, Approve: *m.Approve, Reason: m.Reason}}
	}
	turns, err := s.answerTurns(ctx, p, to.conversation, m.Approvals)
	if err != nil {
		return err
	}
	// The places are found before the answers are given: the agent may end the turn, and the log may then be compacted.
	var requests []answeredRequest
	for _, turn := range turns {
		list, err := s.findAnswered(ctx, p, to, turn, m.Approvals)
		if err != nil {
			return err
		}
		requests = append(requests, list...)
	}
	if len(requests) == 0 {
		return server.Errorf(http.StatusBadRequest, gateway.ReasonAnswered, "no tool call is currently awaiting approval")
	}
	current := requests[len(requests)-1]
	if i := slices.IndexFunc(requests, func(r answeredRequest) bool { return r.isOpen }); i >= 0 {
		current = requests[i]
	}
	to.turn = current.turn
	for _, r := range requests {
		if r.turn == to.turn {
			to.after = max(to.after, r.after)
		}
		if !r.isOpen {
			continue
		}
		c := r.command()
		c.Type, c.Turn, c.Request = gateway.CommandAnswer, r.turn, r.request.ID
		_, err := server.Do(ctx, s.gw, p, to.conversation, c)
		if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonAnswered {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answerTurns returns the turns to which answers may belong: the unfinished ones, and those that the ids of calls name.
func (s *surface) answerTurns(ctx context.Context, p gateway.Principal, conversation string, answers []approval) ([]string, error) {
	turns, err := s.chats.Unfinished(ctx, p, conversation)
	if err != nil {
		return nil, err
	}
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		isWhole := true
		for _, a := range answers {
			owner := ownerOfCall(a.CallID)
			if m := t.Message(owner); m != nil {
				owner = m.Turn
			}
			if t.Turn(owner) == nil {
				isWhole = false
			} else if !slices.Contains(turns, owner) {
				turns = append(turns, owner)
			}
		}
		return isWhole || !t.Earlier
	})
	return turns, err
}

// errFound ends a reading that has found what it looked for.
var errFound = errors.New("letta: found")

// findAnswered returns the requests of a turn that are answered. It reads the log of the turn, where also requests are that have been answered.
func (s *surface) findAnswered(ctx context.Context, p gateway.Principal, to *target, turn string, answers []approval) (list []answeredRequest, err error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, to.conversation)
	if err != nil {
		return nil, err
	}
	var current *answer.Answer
	err = follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			switch op.Type {
			case event.TurnWait:
				r := op.Get().Request
				m := requestOf(a.Messages(), turn, r, to.isAsker)
				if i := slices.IndexFunc(answers, func(a approval) bool { return slices.Contains([]string{m.ID, m.Call.ID, r.ID}, a.CallID) }); i >= 0 {
					list = append(list, answeredRequest{turn: turn, request: *r, call: m.Call, answer: &answers[i], after: (op.Number+2)*spread - 1, isOpen: true})
				}
			case event.TurnResume, event.TurnEnd:
				for i := range list {
					if op.Type == event.TurnEnd || list[i].request.ID == op.Get().Answer.ID {
						list[i].isOpen = false
					}
				}
			}
			return nil
		},
		Flush: func() error {
			if current != nil && current.Upto() >= c.Head {
				return errFound
			}
			return nil
		},
	}.Follow(ctx, s.gw, p, to.conversation, turn, -1)
	if errors.Is(err, errFound) {
		err = nil
	}
	return list, err
}

// command returns what an answer of the client means for the request.
func (r *answeredRequest) command() gateway.Command {
	a, isApproval := r.answer, r.request.Kind == event.RequestApproval
	text := returnText(a.Return)
	switch {
	case a.Type == "tool" && a.Status == "error" && isApproval:
		return gateway.Command{Decision: event.Deny, Text: text} // a client that failed to run it has not allowed it
	case a.Type == "tool" && a.Status == "error":
		return gateway.Command{Text: chats.ErrorAnswer(text)}
	case a.Type == "tool" && r.call.Name == askTool:
		return commandOf(&r.request, r.call, text)
	case a.Type == "tool":
		return chats.OutputAnswer(&r.request, text)
	case isApproval && a.Approve:
		return gateway.Command{Decision: event.Approve}
	case isApproval, r.request.Tool != "" && !a.Approve: // the client's own tool wasn't allowed to run
		return gateway.Command{Decision: event.Deny, Text: a.Reason}
	case r.call.Name == askTool && !a.Approve:
		return gateway.Command{Text: chats.ErrorAnswer(a.Reason)} // the reason is that of the client, and not an answer
	}
	return chats.OutputAnswer(&r.request, cmp.Or(a.Reason, map[bool]string{true: "yes", false: "no"}[a.Approve]))
}

// returnText returns the text of a tool's result, which is a text, a list of texts or any other value.
func returnText(raw json.RawMessage) string {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return chats.TextOf(raw)
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "text" {
			return chats.TextOf(raw)
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}
