package channel

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// Question is an open request of a turn in the form in which a chat shows it.
type Question struct {
	// Token names the request in [AnswerCommand]. It is short, because platforms limit the data of a button.
	Token string
	// Text is Markdown. Choices are the decisions; if there are none, the person answers with a text.
	Text    string
	Choices []string
}

// TextWithChoices returns the text with the names of the choices, for platforms without buttons.
func (q Question) TextWithChoices() string {
	if len(q.Choices) == 0 {
		return q.Text
	}
	return q.Text + "\n\n" + fmt.Sprintf(textChoices, strings.Join(q.Choices, ", "))
}

// Questions returns the open requests of the turn.
func (s *Stream) Questions() []Question {
	turn := s.Turn()
	if turn == nil || !turn.Unfinished() {
		return nil
	}
	list := make([]Question, len(turn.Requests))
	for i, r := range turn.Requests {
		list[i] = Question{Token: requestToken(turn.ID, r.ID), Text: questionText(r), Choices: choices(r)}
	}
	return list
}

// questionText returns what a person has to know to answer a request.
func questionText(r *transcript.Request) string {
	text := cmp.Or(r.Prompt, textQuestion)
	if r.Tool != "" {
		return fmt.Sprintf("❓ **%s**\n\n%s", r.Tool, text)
	}
	return "❓ " + text
}

// choices returns the decisions that answer a request.
func choices(r *transcript.Request) []string {
	if len(r.Options) == 0 && r.Kind == event.RequestApproval {
		return []string{string(event.Approve), string(event.Deny)}
	}
	return r.Options
}

// requestToken returns the name of a request in a command.
func requestToken(turn, request string) string { return hash(turn, request)[:16] }

// AnswerCommand returns the text of the command that a button stands for: the nth choice of a question. It has at most 64 bytes,
// the least limit of all platforms.
func AnswerCommand(token string, n int) string {
	return "/" + commandAnswer + " " + token + " " + strconv.Itoa(n)
}

// openRequest is a request that waits for an answer.
type openRequest struct {
	turn string
	*transcript.Request
}

// openRequests returns the open requests of a conversation, oldest first.
func (c *connector) openRequests(ctx context.Context, b *binding) (list []openRequest, err error) {
	if b == nil {
		return nil, nil
	}
	err = c.pipeline.gateway.ViewTranscript(ctx, c.principalOf(b), b.Conversation, func(log *transcript.Transcript) bool {
		list = nil // the function may be called twice
		for _, turn := range unfinished(log) {
			for _, r := range turn.Requests {
				list = append(list, openRequest{turn.ID, r})
			}
		}
		return true
	})
	if isDeleted(err) {
		return nil, nil
	}
	return list, err
}

// answerButton executes the command of a button.
func (c *connector) answerButton(ctx context.Context, t *chat, m *InboundMessage) (reply string, err error) {
	token, number, _ := strings.Cut(m.Hints.Args, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return textAnswered, nil
	}
	b := c.current(t)
	requests, err := c.openRequests(ctx, b)
	if err != nil {
		return "", err
	}
	for _, r := range requests {
		if requestToken(r.turn, r.ID) != token {
			continue
		}
		if options := choices(r.Request); 0 <= n && n < len(options) {
			return "", c.answer(ctx, b, m, r, event.Decision(options[n]), "")
		}
	}
	return textAnswered, nil
}

// answerText uses a message as the answer to the oldest open request, if it is one: the name of a choice, or any text if the
// agent asks for one. Other messages are for the agent, also while a turn waits.
func (c *connector) answerText(ctx context.Context, t *chat, m *InboundMessage) (isAnswer bool, err error) {
	b := c.current(t)
	requests, err := c.openRequests(ctx, b)
	if err != nil || len(requests) == 0 {
		return false, err
	}
	r := requests[0]
	for _, choice := range choices(r.Request) {
		if strings.EqualFold(strings.TrimSpace(m.Content), choice) {
			return true, c.answer(ctx, b, m, r, event.Decision(choice), "")
		}
	}
	if r.Kind != event.RequestInput {
		return false, nil
	}
	return true, c.answer(ctx, b, m, r, "", m.Content)
}

// answer answers a request of an agent for a person. The command has the key of the message, so a repetition changes nothing.
func (c *connector) answer(ctx context.Context, b *binding, m *InboundMessage, r openRequest, decision event.Decision, text string) error {
	_, err := c.pipeline.gateway.Do(ctx, c.principalOf(b), b.Conversation, gateway.Command{
		Type: gateway.CommandAnswer, Key: m.ID, Turn: r.turn, Request: r.ID, Decision: decision, Text: text,
	})
	return err
}
