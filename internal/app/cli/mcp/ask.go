// The tools that wait for an answer.

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
	"github.com/leat-dev/leat/transcript"
)

// answerOutput is the output of ask and answer.
type answerOutput struct {
	Conversation string   `json:"conversation"`
	Turn         string   `json:"turn"`
	State        string   `json:"state"`
	Text         string   `json:"text"`
	Error        string   `json:"error,omitempty"`
	Question     *request `json:"question,omitempty"`
}

// request is what an agent waits for.
type request struct {
	Request string   `json:"request"`
	Prompt  string   `json:"prompt"`
	Options []string `json:"options"`
}

// The states of turns that have not ended. Those that have ended have their outcome as the state.
const (
	stateWaiting = "waiting"
	stateRunning = "running"
)

// stopLimit is how long stopping a turn of a canceled call may take.
const stopLimit = 10 * time.Second

func (h *host) ask(ctx context.Context, p *callParams) (result, error) {
	var in struct {
		Text         string `json:"text"`
		Agent        string `json:"agent"`
		Conversation string `json:"conversation"`
		Wait         int    `json:"wait_seconds"`
		Stops        bool   `json:"stop_on_cancel"`
	}
	if err := jsonrpc.Decode(p.Arguments, &in); err != nil {
		return result{}, err
	}
	if strings.TrimSpace(in.Text) == "" {
		return result{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "text is empty")
	}
	wait, err := waitOf(in.Wait)
	if err != nil {
		return result{}, err
	}
	q := question{text: in.Text, agent: in.Agent, conversation: in.Conversation}
	ack, err := h.send(ctx, &q)
	if err != nil {
		return result{}, err
	}
	r, err := h.await(ctx, p, q.conversation, ack.Turn, "", wait)
	// The end of the host cancels its calls too, and must not stop the turn.
	if ctx.Err() != nil && in.Stops && h.conn.Context().Err() == nil {
		stopping, endStop := context.WithTimeout(h.conn.Context(), stopLimit)
		defer endStop()
		_, stopErr := h.Client.Stop(stopping, q.conversation, ack.Turn)
		return r, errors.Join(err, stopErr)
	}
	return r, err
}

func (h *host) answer(ctx context.Context, p *callParams) (result, error) {
	var in struct {
		Conversation string         `json:"conversation"`
		Turn         string         `json:"turn"`
		Request      string         `json:"request"`
		Decision     event.Decision `json:"decision"`
		Text         string         `json:"text"`
		Wait         int            `json:"wait_seconds"`
	}
	if err := jsonrpc.Decode(p.Arguments, &in); err != nil {
		return result{}, err
	}
	if in.Decision == "" && in.Text == "" {
		return result{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "an answer needs a decision or a text")
	}
	wait, err := waitOf(in.Wait)
	if err != nil {
		return result{}, err
	}
	t, err := h.Client.Transcript(ctx, in.Conversation)
	if err != nil {
		return result{}, err
	}
	for _, turn := range t.Turns {
		for _, r := range turn.Requests {
			if in.Turn != "" && turn.ID != in.Turn || in.Request != "" && r.ID != in.Request || !turn.Independent() {
				continue
			}
			if _, err := h.Client.Answer(ctx, in.Conversation, turn.ID, r.ID, in.Decision, in.Text); err != nil {
				return result{}, err
			}
			return h.await(ctx, p, in.Conversation, turn.ID, r.ID, wait)
		}
	}
	return result{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "no agent waits for an answer in this conversation")
}

// waitOf returns how long a call waits; 0 is without a limit.
func waitOf(seconds int) (time.Duration, error) {
	if seconds < 0 || seconds > maxWait {
		return 0, jsonrpc.Errorf(jsonrpc.InvalidParams, "wait_seconds must be 1 to %d", maxWait)
	}
	return time.Duration(seconds) * time.Second, nil
}

// await waits until a turn has ended or asks something else than the request that was just answered, or for a limit.
//
// The client reconnects by itself, so a restart of the gateway only takes time. A conversation that is deleted meanwhile is an error.
func (h *host) await(ctx context.Context, p *callParams, conversation, turn, answeredRequest string, wait time.Duration) (result, error) {
	reply := answerOutput{Conversation: conversation, Turn: turn, State: stateRunning}
	limited := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	report := progress{host: h, token: p.Meta.Token}
	err := h.Client.Follow(limited, conversation, func(u leat.Update) error {
		current := u.Transcript.Turn(turn)
		if current == nil {
			return nil // not yet there
		}
		reply.Text = u.Transcript.Visible(turn)
		if reply.update(current, answeredRequest) {
			return leat.ErrStop
		}
		return report.send(reply.Text)
	})
	switch {
	case ctx.Err() != nil:
		return result{}, context.Cause(ctx)
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return result{}, err
	}
	return structured(reply, reply.String(), reply.State == string(event.Failed) || reply.State == string(event.Interrupted))
}

// update takes the state of a turn, and reports whether the call has its answer.
func (a *answerOutput) update(turn *transcript.Turn, answeredRequest string) bool {
	a.Question = nil
	if !turn.Unfinished() {
		a.State = string(turn.Outcome)
		if turn.Error != nil {
			a.Error = turn.Error.Message
		}
		return true
	}
	for _, r := range turn.Requests {
		if r.ID == answeredRequest {
			continue // the transcript doesn't have the answer yet
		}
		options := r.Options
		if r.Kind == event.RequestApproval && len(options) == 0 {
			options = []string{string(event.Approve), string(event.Deny)}
		}
		a.State, a.Question = stateWaiting, &request{r.ID, r.Prompt, append([]string{}, options...)}
		return true
	}
	return false
}

// String returns an answer for hosts and models that read only text.
func (a *answerOutput) String() string {
	switch {
	case a.Question != nil:
		note := "The agent waits for an answer: " + a.Question.Prompt
		if len(a.Question.Options) > 0 {
			note += " (" + strings.Join(a.Question.Options, ", ") + ")"
		}
		return strings.TrimLeft(a.Text+"\n\n"+note+"\nConversation: "+a.Conversation, "\n")
	case a.Error != "":
		return strings.TrimLeft(a.Text+"\n\nThe answer failed: "+a.Error, "\n")
	case a.State == stateRunning:
		return strings.TrimLeft(a.Text+"\n\nThe agent is still working. Conversation: "+a.Conversation, "\n")
	case a.Text == "":
		return "The agent has written no text (" + a.State + ")."
	}
	return a.Text
}

// progressPause is the shortest time between two notifications. A host shows them to people.
const progressPause = time.Second

// progress reports how an answer grows.
type progress struct {
	host  *host
	token json.RawMessage // empty if the host wants no progress
	count int
	last  time.Time
}

// send reports the last line of a text, unless another report was sent a moment ago. The protocol demands that the progress increases.
func (p *progress) send(text string) error {
	if len(p.token) == 0 || string(p.token) == "null" || text == "" || time.Since(p.last) < progressPause {
		return nil
	}
	p.last = time.Now()
	p.count++
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := []rune(lines[len(lines)-1])
	return p.host.conn.Notify("notifications/progress", map[string]any{"progressToken": p.token, "progress": p.count, "message": string(line[max(0, len(line)-200):])})
}
