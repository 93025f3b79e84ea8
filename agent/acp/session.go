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
type kept struct {
	Session string `json:"session"`
}

// session returns the conversation's session, open in this process. fresh says that it knows nothing of what was said.
func (a *Agent) session(ctx context.Context, p *peer, in agent.Input, out *agent.Emitter) (id string, fresh bool, err error) {
	var k kept
	if len(in.Session) > 0 {
		if err := json.Unmarshal(in.Session, &k); err != nil {
			return "", false, fmt.Errorf("session: %w", err)
		}
	}
	switch taken, err := a.take(ctx, p, k.Session); {
	case err != nil:
		return "", false, err
	case taken:
		return k.Session, false, nil
	case k.Session != "":
		out.Log().Info("the agent's session can't be taken up; a new one is told what was said", "session", k.Session)
	}
	var made opened
	if err := p.call(ctx, "session/new", open{Dir: a.cfg.Dir, Servers: []struct{}{}}, &made); err != nil {
		return "", false, p.refused("the agent opens no session", err)
	}
	if made.ID == "" {
		return "", false, &agent.Error{Code: codeStream, Message: "the agent opened a session and gave it no id"}
	}
	p.learn(made.ID, true)
	b, err := json.Marshal(kept{made.ID})
	if err != nil {
		return "", false, err
	}
	if err := out.KeepSession(ctx, b); err != nil && !errors.Is(err, agent.ErrNoSession) {
		return "", false, err
	}
	return made.ID, true, nil
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
	var nothing struct{}
	err := p.call(ctx, method, open{ID: id, Dir: a.cfg.Dir, Servers: []struct{}{}}, &nothing)
	var f *failure
	switch {
	case errors.As(err, &f):
		return false, nil
	case err != nil:
		return false, p.refused("", err)
	}
	p.learn(id, true)
	return true, nil
}

// blocks are the message as a prompt; a fresh session is told what was said before.
func blocks(in agent.Input, fresh bool, can *abilities) []block {
	var all []block
	if past := history(in.History); fresh && past != "" {
		all = append(all, block{Type: "text", Text: past})
	}
	all = append(all, block{Type: "text", Text: in.Message.Text})
	for _, part := range in.Message.Parts {
		m := part.Media
		if m == nil {
			continue
		}
		kind, _, _ := strings.Cut(m.MIME, "/")
		head, data, inline := strings.Cut(m.URL, ";base64,")
		switch {
		case inline && strings.HasPrefix(head, "data:") && (kind == "image" && can.Agent.Prompt.Image || kind == "audio" && can.Agent.Prompt.Audio):
			all = append(all, block{Type: kind, Data: data, MIME: m.MIME})
		case !inline && call.Reachable(m.URL):
			all = append(all, block{Type: "resource_link", URI: m.URL, Name: m.Name, MIME: m.MIME})
		default:
			all = append(all, block{Type: "text", Text: "(The file " + m.Name + " was attached; it can't be shown to you.)"})
		}
	}
	return all
}

// history is what was said before, in words.
func history(all []agent.Message) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("What was said before in this conversation:\n")
	for _, m := range all {
		who := "User"
		if m.Role == event.Assistant {
			who = "You"
		}
		b.WriteString("\n" + who + ": " + m.Text + "\n")
	}
	return b.String()
}
