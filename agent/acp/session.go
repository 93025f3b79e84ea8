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

// kept is what is kept with a conversation.
type storedSession struct {
	Session string `json:"session"`
}

// session returns the conversation's session, open in this process. fresh says that it knows nothing of what was said.
func (a *Agent) openSession(ctx context.Context, p *peer, in agent.Input, emitter *agent.Emitter) (id string, isNew bool, err error) {
	var stored storedSession
	if len(in.Session) > 0 {
		if err := json.Unmarshal(in.Session, &stored); err != nil {
			return "", false, fmt.Errorf("session: %w", err)
		}
	}
	switch isOpen, err := a.take(ctx, p, stored.Session); {
	case err != nil:
		return "", false, err
	case isOpen:
		return stored.Session, false, nil
	case stored.Session != "":
		emitter.Log().Info("the agent's session can't be taken up; a new one is told what was said", "session", stored.Session)
	}
	var created openResult
	if err := p.call(ctx, "session/new", openParams{Dir: a.cfg.Dir, Servers: []struct{}{}}, &created); err != nil {
		return "", false, p.requestError("the agent opens no session", err)
	}
	if created.ID == "" {
		return "", false, &agent.Error{Code: codeStream, Message: "the agent opened a session and gave it no id"}
	}
	p.learn(created.ID, true)
	b, err := json.Marshal(storedSession{created.ID})
	if err != nil {
		return "", false, err
	}
	if err := emitter.KeepSession(ctx, b); err != nil && !errors.Is(err, agent.ErrNoSession) {
		return "", false, err
	}
	return created.ID, true, nil
}

// take takes a session up, and reports whether that went well.
func (a *Agent) take(ctx context.Context, p *peer, id string) (bool, error) {
	method := ""
	switch {
	case id == "":
		return false, nil
	case p.knows(id):
		return true, nil
	case p.can.resumes():
		method = "session/resume"
	case p.can.Agent.Load:
		method = "session/load" // which tells all that was said again; nobody listens
	default:
		return false, nil
	}
	var ignored struct{}
	err := p.call(ctx, method, openParams{ID: id, Dir: a.cfg.Dir, Servers: []struct{}{}}, &ignored)
	var f *failure
	switch {
	case errors.As(err, &f):
		return false, nil
	case err != nil:
		return false, p.requestError("", err)
	}
	p.learn(id, true)
	return true, nil
}

// blocks are the message as a prompt; a fresh session is told what was said before.
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

// history is what was said before, in words.
func history(messages []agent.Message) string {
	if len(messages) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("What was said before in this conversation:\n")
	for _, m := range messages {
		speaker := "User"
		if m.Role == event.Assistant {
			speaker = "You"
		}
		b.WriteString("\n" + speaker + ": " + m.Text + "\n")
	}
	return b.String()
}
