// Sessions of an ACP agent: a stored one is loaded if the agent can, and otherwise a new one gets the history as text.

package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/event"
)

// storedSession is the JSON that is stored with the conversation.
type storedSession struct {
	Session string `json:"session"`
}

// openSession returns the id of the conversation's session, open in this process. isNew means that the session
// doesn't know the history, so that the prompt must include it. A new session's id is stored before the prompt
// is sent; a crash in between costs an empty session, while the reverse order would lose the agent's memory of
// the turn.
//
// It tries, in this order: the stored session if this process has it open, the stored session after
// session/resume or session/load, and a new session.
func (a *Agent) openSession(ctx context.Context, p *peer, in agent.Input, emitter *agent.Emitter) (id string, isNew bool, err error) {
	var record storedSession
	if len(in.Session) > 0 {
		if err := json.Unmarshal(in.Session, &record); err != nil {
			return "", false, fmt.Errorf("session: %w", err)
		}
	}
	switch isOpen, err := a.restoreSession(ctx, p, record.Session); {
	case err != nil:
		return "", false, err
	case isOpen:
		return record.Session, false, nil
	case record.Session != "":
		emitter.Log().Info("agent session can't be resumed; a new one gets the history", "session", record.Session)
	}
	var created openResult
	if err := p.call(ctx, "session/new", openParams{Dir: a.cfg.Dir, Servers: []struct{}{}}, &created); err != nil {
		return "", false, p.requestError("the agent refused to open a session", err)
	}
	if created.ID == "" {
		return "", false, &agent.Error{Code: codeStream, Message: "the agent opened a session without an id"}
	}
	p.learn(created.ID, true)
	if err := call.StoreSession(ctx, emitter, storedSession{created.ID}); err != nil {
		return "", false, err
	}
	return created.ID, true, nil
}

// restoreSession makes the stored session usable in this process and reports whether it did. It returns false if the agent
// doesn't support that or refuses, for example because it has deleted the session. It returns an error only if the process
// fails.
func (a *Agent) restoreSession(ctx context.Context, p *peer, id string) (bool, error) {
	method := ""
	switch {
	case id == "":
		return false, nil
	case p.knows(id):
		return true, nil
	case p.can.resumes():
		method = "session/resume"
	case p.can.Agent.Load:
		method = "session/load" // replays the whole history as updates, which are dropped because no turn listens yet
	default:
		return false, nil
	}
	var ignored struct{}
	err := p.call(ctx, method, openParams{ID: id, Dir: a.cfg.Dir, Servers: []struct{}{}}, &ignored)
	if _, ok := errors.AsType[*failure](err); ok {
		return false, nil
	}
	if err != nil {
		return false, p.requestError("", err)
	}
	p.learn(id, true)
	return true, nil
}

// blocks converts the message to the content blocks of a prompt. If the session is new, the first block is the history. Images
// and audio are sent inline if the agent accepts them; files with a public URL become links; any other file is mentioned by
// name, so that the agent can tell the user that it didn't get it.
func blocks(in agent.Input, isNew bool, can *abilities) []block {
	var content []block
	if past := history(in.History); isNew && past != "" {
		content = append(content, block{Type: "text", Text: past})
	}
	content = append(content, block{Type: "text", Text: in.Message.Text})
	for _, part := range in.Message.Parts {
		m := part.Media
		if m == nil {
			continue
		}
		kind, _, _ := strings.Cut(m.MIME, "/")
		head, data, inline := strings.Cut(m.URL, ";base64,")
		switch {
		case inline && strings.HasPrefix(head, "data:") && (kind == "image" && can.Agent.Prompt.Image || kind == "audio" && can.Agent.Prompt.Audio):
			content = append(content, block{Type: kind, Data: data, MIME: m.MIME})
		case !inline && call.Reachable(m.URL):
			content = append(content, block{Type: "resource_link", URI: m.URL, Name: m.Name, MIME: m.MIME})
		default:
			content = append(content, block{Type: "text", Text: "(The file " + m.Name + " was attached; it can't be shown to you.)"})
		}
	}
	return content
}

// history renders the previous messages as text, or returns "" without any.
func history(messages []agent.Message) string {
	if len(messages) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Previous messages of this conversation:\n")
	for _, m := range messages {
		speaker := "User"
		if m.Role == event.Assistant {
			speaker = "You"
		}
		b.WriteString("\n" + speaker + ": " + m.Text + "\n")
	}
	return b.String()
}
