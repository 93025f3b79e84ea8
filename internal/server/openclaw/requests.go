// Requests of agents: approvals and questions.

package openclaw

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// The decisions of the protocol.
const (
	allowOnce   = "allow-once"
	allowAlways = "allow-always"
	deny        = "deny"
)

const (
	// requestLife is how long clients show a request. Leat itself decides when it expires.
	requestLife = 24 * time.Hour
	// questionID is the id of the only question of a request.
	questionID = "answer"
	// maxOptions is how many options a question may have. The Control UI refuses more.
	maxOptions = 4
)

// approval is an approval as clients get it: one of a plugin, which has a prompt and not a command, and is the only kind that the terminal
// interface shows.
type approval struct {
	// Identifies it to clients.
	ID      string `json:"id"`
	Request struct {
		// What it is about, in one line.
		Title string `json:"title"`
		// What the agent asks.
		Description string `json:"description"`
		// The name of the tool, of a result or a request.
		Tool string `json:"toolName,omitempty"`
		// The agent of the session.
		AgentID string `json:"agentId"`
		// The session, under the key that the client uses.
		SessionKey string `json:"sessionKey"`
		// The run that the frame is about.
		RunID string `json:"runId"`
		// Connects a call with its result.
		ToolCallID string `json:"toolCallId,omitempty"`
		// What a person may choose.
		Allowed []string `json:"allowedDecisions"`
	} `json:"request"`
	// Epoch milliseconds.
	CreatedAt int64 `json:"createdAtMs"`
	// When clients stop showing it.
	ExpiresAt int64 `json:"expiresAtMs"`
}

// question is a question as clients get it.
type question struct {
	// Identifies it to clients.
	ID string `json:"id"`
	// Exactly one.
	Questions []questionItem `json:"questions"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The run that the frame is about.
	RunID string `json:"runId"`
	// Epoch milliseconds.
	CreatedAt int64 `json:"createdAtMs"`
	// When clients stop showing it.
	ExpiresAt int64 `json:"expiresAtMs"`
	// Always pending: closed questions are not listed.
	Status string `json:"status"`
}

// questionItem is the only question of a question.
type questionItem struct {
	// Names the question in the answer.
	ID string `json:"questionId"`
	// Always empty.
	Header string `json:"header"`
	// What the agent asks.
	Question string `json:"question"`
	// The answers to choose from; may be empty.
	Options []questionOption `json:"options"`
	// A free text is possible too.
	IsOther bool `json:"isOther"`
}

// questionOption is one of the answers that a question offers.
type questionOption struct {
	// The title again, under the name that can be changed.
	Label string `json:"label"`
}

// requestID returns the id of a request for clients: that of its turn and its own.
func requestID(turn, request string) string { return turn + ":" + request }

// approvalOf returns an approval.
func approvalOf(k sessionKey, run, turn string, r *transcript.Request) *approval {
	a := &approval{ID: requestID(turn, r.ID), CreatedAt: r.At, ExpiresAt: r.At + requestLife.Milliseconds()}
	a.Request.Title, a.Request.Description, a.Request.Tool = titleOf(r), cmp.Or(strings.TrimSpace(r.Prompt), titleOf(r)), r.Tool
	a.Request.AgentID, a.Request.SessionKey, a.Request.RunID = k.agent, k.full, run
	a.Request.Allowed = []string{allowOnce}
	if alwaysOf(&r.Request) != "" {
		a.Request.Allowed = append(a.Request.Allowed, allowAlways)
	}
	a.Request.Allowed = append(a.Request.Allowed, deny)
	return a
}

// titleOf returns what an approval is about. The prompt is below it.
func titleOf(r *transcript.Request) string {
	if r.Tool == "" {
		return "The agent needs an approval"
	}
	return "The agent wants to run " + r.Tool
}

// alwaysOf returns the option of a request that allows it from now on, or "".
func alwaysOf(r *event.Request) string {
	i := slices.IndexFunc(r.Options, func(o string) bool { return strings.Contains(strings.ToLower(o), "always") })
	if i < 0 {
		return ""
	}
	return r.Options[i]
}

// questionOf returns a question.
func questionOf(k sessionKey, run, turn string, r *transcript.Request) *question {
	item := questionItem{
		ID: questionID, Question: cmp.Or(strings.TrimSpace(r.Prompt), "The agent needs an answer."), Options: []questionOption{}, IsOther: true,
	}
	for _, o := range r.Options[:min(len(r.Options), maxOptions)] {
		item.Options = append(item.Options, questionOption{o})
	}
	return &question{
		ID: requestID(turn, r.ID), Questions: []questionItem{item}, AgentID: k.agent, SessionKey: k.full, RunID: run, CreatedAt: r.At,
		ExpiresAt: r.At + requestLife.Milliseconds(), Status: "pending",
	}
}

// closeRequests queues events for the requests of a turn that are no longer open. They come before what the agent did with the answers.
func (r *run) closeRequests(turn *transcript.Turn) {
	for id, kind := range r.requests {
		if !slices.ContainsFunc(turn.Requests, func(rq *transcript.Request) bool { return rq.ID == id }) {
			r.resolved(id, kind)
		}
	}
}

// openRequests queues events for the new requests of a turn. They come after the text before them.
func (r *run) openRequests(turn *transcript.Turn) {
	for _, rq := range turn.Requests {
		if _, ok := r.requests[rq.ID]; ok {
			continue
		}
		r.requests[rq.ID] = rq.Kind
		if rq.Kind == event.RequestApproval {
			r.queue = append(r.queue, queued{name: "plugin.approval.requested", payload: approvalOf(r.s.key, r.id, turn.ID, rq)})
		} else {
			r.queue = append(r.queue, queued{name: "question.requested", payload: questionOf(r.s.key, r.id, turn.ID, rq)})
		}
	}
}

// resolved queues the event that a request is closed. A view doesn't have its answer: it may have been given elsewhere, or the turn has ended.
func (r *run) resolved(id string, kind event.RequestKind) {
	delete(r.requests, id)
	name, payload := "question.resolved", map[string]any{"id": requestID(r.turn, id), "status": "cancelled"}
	if kind == event.RequestApproval {
		name, payload = "plugin.approval.resolved", map[string]any{"id": requestID(r.turn, id), "ts": time.Now().UnixMilli()}
	}
	r.queue = append(r.queue, queued{name: name, payload: payload})
}

// openRequests calls fn for each open request of the principal's conversations.
func (c *connection) openRequests(fn func(k sessionKey, run, turn string, r *transcript.Request)) error {
	summaries, err := c.summaries()
	if err != nil {
		return err
	}
	for i := range summaries {
		s := &summaries[i]
		if len(s.WaitingTurns) == 0 {
			continue
		}
		k := c.keyFor(s)
		err := c.s.gw.ViewTranscript(c.ctx, c.principal(), s.ID, func(t *transcript.Transcript) bool {
			for _, turn := range t.Turns {
				for _, r := range turn.Requests {
					fn(k, runID(t, turn), turn.ID, r)
				}
			}
			return true
		})
		if err != nil && !errors.Is(err, gateway.ErrNotFound) {
			return err
		}
	}
	return nil
}

// listApprovals answers plugin.approval.list.
func (c *connection) listApprovals(_ *struct{}) (any, error) {
	list := []*approval{}
	err := c.openRequests(func(k sessionKey, run, turn string, r *transcript.Request) {
		if r.Kind == event.RequestApproval {
			list = append(list, approvalOf(k, run, turn, r))
		}
	})
	return list, err
}

// listQuestions answers question.list.
func (c *connection) listQuestions(_ *struct{}) (any, error) {
	list := []*question{}
	err := c.openRequests(func(k sessionKey, run, turn string, r *transcript.Request) {
		if r.Kind != event.RequestApproval {
			list = append(list, questionOf(k, run, turn, r))
		}
	})
	return map[string]any{"questions": list}, err
}

// idParams name a request.
type idParams struct {
	// Identifies it to clients.
	ID string `json:"id"`
}

// getQuestion answers question.get.
func (c *connection) getQuestion(p *idParams) (any, error) {
	var q *question
	err := c.openRequests(func(k sessionKey, run, turn string, r *transcript.Request) {
		if r.Kind != event.RequestApproval && requestID(turn, r.ID) == p.ID {
			q = questionOf(k, run, turn, r)
		}
	})
	if err == nil && q == nil {
		err = server.Errorf(http.StatusNotFound, "QUESTION_NOT_FOUND", "unknown or expired question id")
	}
	return map[string]any{"question": q}, err
}

// approvalParams are the parameters of plugin.approval.resolve.
type approvalParams struct {
	// Identifies it to clients.
	ID string `json:"id"`
	// One of the allowed decisions.
	Decision string `json:"decision"`
}

// resolveApproval answers plugin.approval.resolve.
func (c *connection) resolveApproval(p *approvalParams) (any, error) {
	conversation, turn, request, err := c.request(p.ID)
	if err != nil {
		return nil, err
	}
	command := gateway.Command{Type: gateway.CommandAnswer, Turn: turn, Request: request.ID}
	always := alwaysOf(request)
	switch {
	case p.Decision == allowOnce:
		command.Decision = event.Approve
	case p.Decision == allowAlways && always != "":
		command.Decision = event.Decision(always)
	case p.Decision == deny:
		command.Decision = event.Deny
	default:
		return nil, server.Invalid("invalid decision %q", p.Decision)
	}
	if err := c.answer(conversation, command); err != nil {
		return nil, err
	}
	return map[string]any{"ok": true}, nil
}

// questionParams are the parameters of question.resolve.
type questionParams struct {
	// Identifies it to clients.
	ID string `json:"id"`
	// The user does not want to answer.
	Cancel  bool `json:"cancel"`
	Answers *struct {
		// By the id of the question.
		Answers map[string][]string `json:"answers"`
	} `json:"answers"`
}

// resolveQuestion answers question.resolve. A question that the user cancels is denied.
func (c *connection) resolveQuestion(p *questionParams) (any, error) {
	conversation, turn, request, err := c.request(p.ID)
	if err != nil {
		return nil, err
	}
	command := gateway.Command{Type: gateway.CommandAnswer, Turn: turn, Request: request.ID}
	var values []string
	if p.Answers != nil {
		values = p.Answers.Answers[questionID]
	}
	text := strings.TrimSpace(strings.Join(values, ", "))
	switch {
	case p.Cancel:
		command.Decision = event.Deny
	case text == "":
		return nil, server.Invalid("the answer to %q is missing", questionID)
	case slices.Contains(request.Options, text):
		command.Decision = event.Decision(text)
	default:
		command.Text = text
	}
	if err := c.answer(conversation, command); err != nil {
		return nil, err
	}
	if p.Cancel {
		return map[string]any{"status": "cancelled"}, nil
	}
	return map[string]any{"status": "answered", "answers": p.Answers}, nil
}

// request returns an open request and the conversation and the turn that it belongs to.
func (c *connection) request(id string) (conversation, turn string, request *event.Request, err error) {
	unknown := server.Errorf(http.StatusNotFound, "APPROVAL_NOT_FOUND", "unknown or expired approval id")
	turn, name, ok := strings.Cut(id, ":")
	if !ok {
		return "", "", nil, unknown
	}
	conversation, state, err := c.s.gw.Turn(c.ctx, c.principal(), gateway.ActionRead, turn)
	if errors.Is(err, gateway.ErrNotFound) {
		return "", "", nil, unknown
	}
	if err != nil {
		return "", "", nil, err
	}
	for _, r := range state.Requests {
		if r.ID == name {
			return conversation, turn, &r.Request, nil
		}
	}
	return "", "", nil, unknown
}

// answer passes an answer on.
func (c *connection) answer(conversation string, command gateway.Command) error {
	_, err := c.do(conversation, command)
	return err
}
