// Questions.

package openclaw

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

const (
	// questionID is the id of the only question of a request.
	questionID = "answer"
	// maxOptions is how many options a question may have, because the Control UI refuses more. The user can type the others.
	maxOptions = 4
)

// errUnknownQuestion has the reason by which the Control UI recognizes that a question was answered elsewhere.
var errUnknownQuestion = server.Errorf(http.StatusNotFound, "QUESTION_NOT_FOUND", "unknown or expired question id")

// question is a question as clients get it. The protocol allows up to three questions in one, Leat has one. Its times are in epoch
// milliseconds; clients hide it after ExpiresAt.
type question struct {
	ID         string         `json:"id"`
	Questions  []questionItem `json:"questions"`
	AgentID    string         `json:"agentId"`
	SessionKey string         `json:"sessionKey"`
	RunID      string         `json:"runId"`
	CreatedAt  int64          `json:"createdAtMs"`
	ExpiresAt  int64          `json:"expiresAtMs"`
	Status     string         `json:"status"` // always pending
}

// questionItem is the only question of a question.
type questionItem struct {
	ID       string           `json:"questionId"`
	Header   string           `json:"header"` // at most 12 characters, before the answer
	Question string           `json:"question"`
	Options  []questionOption `json:"options"`
	IsOther  bool             `json:"isOther"` // a text is possible, besides the options
}

type questionOption struct {
	Label string `json:"label"`
}

// resolution is how a question was closed.
type resolution struct {
	Status  string           `json:"status"` // answered or cancelled
	Answers *questionAnswers `json:"answers,omitempty"`
}

// questionAnswers are the chosen options and texts, by the id of the question.
type questionAnswers struct {
	Answers map[string][]string `json:"answers"`
}

// questionResolved reports that a question is closed.
type questionResolved struct {
	ID string `json:"id"`
	resolution
}

// resolutionElsewhere returns the resolution of a question that another client has closed, whose answer is unknown here.
func resolutionElsewhere(isAnswered bool) resolution {
	if isAnswered {
		return resolution{"answered", &questionAnswers{map[string][]string{}}}
	}
	return resolution{Status: "cancelled"}
}

// questionOf returns a question.
func questionOf(k sessionKey, run, turn string, r *transcript.Request) *question {
	item := questionItem{
		ID: questionID, Header: "Question", Question: cmp.Or(strings.TrimSpace(r.Prompt), "The agent needs an answer."), Options: []questionOption{}, IsOther: true,
	}
	buttons := min(len(r.Options), maxOptions)
	for _, o := range r.Options[:buttons] {
		item.Options = append(item.Options, questionOption{o})
	}
	if others := r.Options[buttons:]; len(others) > 0 {
		item.Question += "\nOther answers: " + strings.Join(others, ", ")
	}
	return &question{
		ID: requestID(turn, r.ID), Questions: []questionItem{item}, AgentID: k.agent, SessionKey: k.full, RunID: run, CreatedAt: r.At,
		ExpiresAt: deadline(), Status: "pending",
	}
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

// idParams name a question.
type idParams struct {
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
		err = errUnknownQuestion
	}
	return map[string]any{"question": q}, err
}

// questionParams are the parameters of question.resolve: an answer, or that the user doesn't want to give one.
type questionParams struct {
	ID      string           `json:"id"`
	Cancel  bool             `json:"cancel"`
	Answers *questionAnswers `json:"answers"`
}

// resolveQuestion answers question.resolve. A question that the user cancels is denied.
func (c *connection) resolveQuestion(p *questionParams) (any, error) {
	r, err := c.request(p.ID, errUnknownQuestion)
	if err != nil {
		return nil, err
	}
	command, resolved := r.command(), resolution{"answered", p.Answers}
	var values []string
	if p.Answers != nil {
		values = p.Answers.Answers[questionID]
	}
	text := strings.TrimSpace(strings.Join(values, ", "))
	switch {
	case p.Cancel:
		command.Decision, resolved = event.Deny, resolution{Status: "cancelled"}
	case text == "":
		return nil, server.Invalid("the answer to %q is missing", questionID)
	case slices.Contains(r.Options, text):
		command.Decision = event.Decision(text)
	default:
		command.Text = text
	}
	forget := c.expectResolution(r.conversation, p.ID, resolved)
	if _, err := c.do(r.conversation, command); err != nil {
		forget()
		return nil, err
	}
	return resolved, nil
}

// expectResolution has the sessions of a conversation report how this client closes a question. Without it, the event would contradict the
// response. forget undoes it.
func (c *connection) expectResolution(conversation, id string, resolved resolution) (forget func()) {
	var sessions []*session
	for _, s := range c.sessions {
		if s.conversation == conversation {
			sessions = append(sessions, s)
		}
	}
	update := func(change func(s *session)) {
		for _, s := range sessions {
			s.mu.Lock()
			change(s)
			s.mu.Unlock()
		}
	}
	update(func(s *session) { s.resolutions[id] = resolved })
	return func() { update(func(s *session) { delete(s.resolutions, id) }) }
}
