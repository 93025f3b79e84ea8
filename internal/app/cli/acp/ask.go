// The questions of agents: approvals and choices as requests for permission, and texts as forms or as a message that the next prompt answers.

package acp

import (
	"context"
	"errors"
	"slices"
	"strings"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
	"github.com/leat-dev/leat/transcript"
)

// question is a request of a turn.
type question struct {
	turn    string
	request event.Request
}

func (q *question) key() string { return q.turn + " " + q.request.ID }

// isText reports whether the answer is a text and not one of several choices.
func (q *question) isText() bool {
	// A call of a client's tool is such a question too. The editor has no tools for agents, so its user answers.
	return q.request.Kind == event.RequestInput && len(q.request.Options) == 0
}

// ask asks what the agents of a transcript ask, each question once, and withdraws the questions that were answered elsewhere.
func (s *session) ask(t *transcript.Transcript) error {
	open := map[string]bool{}
	for _, turn := range t.Turns {
		if !turn.Unfinished() || !turn.Independent() {
			continue
		}
		for _, r := range turn.Requests {
			q := question{turn.ID, r.Request}
			open[q.key()] = true
			if err := s.askOnce(t, q); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, withdraw := range s.withdrawals {
		if !open[key] {
			withdraw()
			delete(s.withdrawals, key)
		}
	}
	if s.question != nil && !open[s.question.key()] {
		s.question = nil
	}
	return nil
}

// askOnce asks a question that wasn't asked yet.
//
// A question outside a prompt is asked too: the editor may have loaded a session whose turn another device has begun. Its requests for
// permission don't depend on a prompt.
func (s *session) askOnce(t *transcript.Transcript, q question) error {
	s.mu.Lock()
	if s.withdrawals[q.key()] != nil {
		s.mu.Unlock()
		return nil
	}
	ctx, withdraw := context.WithCancel(context.Background())
	s.withdrawals[q.key()] = withdraw
	s.host.mu.Lock()
	hasForms := s.host.hasForms
	s.host.mu.Unlock()
	isMessage := q.isText() && !hasForms
	if isMessage {
		s.question = &q
	}
	s.mu.Unlock()
	if isMessage {
		s.writer.hasText, s.writer.thought = true, ""
		return s.notify(chunk{agentChunk, q.turn + "." + q.request.ID, block{Type: "text", Text: event.JoinBlank + s.host.Question(&q.request)}})
	}
	call := tool{ID: "request." + q.request.ID, Title: clip(s.host.Question(&q.request)), Status: "pending"}
	if m, p := partOf(t, q); p != nil {
		call = tool{ID: partID(m, p), Title: titleOf(p), Status: "pending"}
		if q.request.Prompt != "" {
			call.Content = []toolContent{{"content", block{Type: "text", Text: q.request.Prompt}}}
		}
	}
	s.host.conn.Go(func(run context.Context) {
		defer context.AfterFunc(run, withdraw)()
		var err error
		if q.isText() {
			err = s.askText(ctx, q)
		} else {
			err = s.askChoice(ctx, q, call)
		}
		if err != nil && ctx.Err() == nil {
			s.host.Log.Warn("question not answered", "conversation", s.id, "turn", q.turn, "error", err)
		}
	})
	return nil
}

// partOf returns the tool part that a request is about, or nil. Some agents name only the tool: then it is the newest unfinished call of it.
func partOf(t *transcript.Transcript, q question) (*transcript.Message, *transcript.Part) {
	for _, m := range slices.Backward(t.Messages) {
		if m.Turn != q.turn {
			continue
		}
		for _, p := range slices.Backward(m.Parts) {
			if p.Kind == event.KindTool && (p.ID == q.request.Part || q.request.Part == "" && p.Name == q.request.Tool && !p.Final) {
				return m, p
			}
		}
	}
	return nil, nil
}

// askChoice has the user choose. An outcome without a choice leaves the question open: editors send it for all questions of a turn that is
// being canceled.
func (s *session) askChoice(ctx context.Context, q question, call tool) error {
	options := choicesOf(&q.request)
	var result struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	params := map[string]any{"sessionId": s.id, "toolCall": call, "options": options}
	if err := s.host.conn.Call(ctx, "session/request_permission", params, &result); err != nil {
		return err
	}
	if result.Outcome.Outcome != "selected" {
		return nil
	}
	if !slices.ContainsFunc(options, func(o permissionOption) bool { return o.ID == result.Outcome.Option }) {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "unknown option %q", result.Outcome.Option)
	}
	return s.answer(ctx, q, event.Decision(result.Outcome.Option), "")
}

// choicesOf returns the choices of a request. Their ids are decisions.
//
// An approval without options is a decision about one call, so it has no allow_always: Leat doesn't remember permissions for an agent.
func choicesOf(r *event.Request) []permissionOption {
	if len(r.Options) == 0 {
		return []permissionOption{{string(event.Approve), "Allow", "allow_once"}, {string(event.Deny), "Reject", "reject_once"}}
	}
	var list []permissionOption
	for _, o := range r.Options {
		list = append(list, permissionOption{o, o, kindOf(o)})
	}
	return list
}

// kindOf returns the kind of a choice, by which editors choose its icon and its key. Agents name their choices freely.
func kindOf(option string) string {
	words := strings.Fields(strings.ToLower(option))
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return slices.Contains(words, w) })
	}
	isLasting := has("always", "session", "never")
	switch {
	case has("reject", "deny", "no", "no,", "cancel", "never", "don't", "refuse", "abort"):
		if isLasting {
			return "reject_always"
		}
		return "reject_once"
	case isLasting:
		return "allow_always"
	}
	return "allow_once"
}

// formField is the name of the only field of a form.
const formField = "answer"

// askText asks for a text with a form of one field. A declined form denies the question, and the agent decides what to do without an answer. A
// form that was closed leaves the question open for other devices.
func (s *session) askText(ctx context.Context, q question) error {
	var result struct {
		Action  string         `json:"action"` // accept, decline or cancel
		Content map[string]any `json:"content"`
	}
	schema := map[string]any{
		"type": "object", "required": []string{formField},
		"properties": map[string]any{formField: map[string]string{"type": "string", "title": "Answer"}},
	}
	params := map[string]any{"sessionId": s.id, "mode": "form", "message": s.host.Question(&q.request), "requestedSchema": schema}
	if err := s.host.conn.Call(ctx, "elicitation/create", params, &result); err != nil {
		return err
	}
	text, _ := result.Content[formField].(string) // else the form is empty
	switch {
	case result.Action == "decline":
		return s.answer(ctx, q, event.Deny, "")
	case result.Action != "accept" || text == "":
		return nil
	}
	return s.answer(ctx, q, "", text)
}

// answer answers a question. It returns nil if another client was faster.
func (s *session) answer(ctx context.Context, q question, decision event.Decision, text string) error {
	for {
		_, err := s.host.Client.Answer(ctx, s.id, q.turn, q.request.ID, decision, text)
		if e, ok := errors.AsType[*leat.Error](err); ok && e.Reason == "already_ended" {
			return nil
		}
		// While the gateway can't be reached, the question stays open, and its answer must not be lost.
		if err == nil || !isTemporary(err) || ctx.Err() != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}
