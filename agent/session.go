package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrNoSession says that no session is kept: by the sink of a turn, or by a conversation (see [Sessions]).
var ErrNoSession = errors.New("agent: sessions are not kept")

// SessionSink is a sink that keeps what an agent calls a conversation upstream.
type SessionSink interface {
	KeepSession(ctx context.Context, session json.RawMessage) error
}

// KeepSession stores under what names the agent's upstream knows the conversation (its session, its conversation, its agent):
// [Input].Session of every later turn of this conversation with this agent. It is durable when KeepSession returns, and goes
// with the conversation; where everything is taken out of the conversation it is forgotten, so that no session goes on that
// remembers it. It is JSON of the agent's own shape, at most [MaxSession]; nil forgets it.
func (e *Emitter) KeepSession(ctx context.Context, session json.RawMessage) error {
	s, ok := e.sink.(SessionSink)
	if !ok {
		return ErrNoSession
	}
	return s.KeepSession(ctx, session)
}

// MaxSession bounds what [Emitter.KeepSession] takes, in bytes.
const MaxSession = 4 << 10

// placeholders are what a template may name.
var placeholders = map[string]func(Input) string{
	"tenant":       func(in Input) string { return in.Principal.Tenant },
	"subject":      func(in Input) string { return in.Principal.Subject },
	"conversation": func(in Input) string { return in.Conversation },
}

// Expand fills a template, such as leat-{tenant}-{conversation}, from a turn's input. A name in braces that is not tenant,
// subject or conversation, or a brace without its partner, is an error; so that a kind can check a template, Expand may be
// called with an empty Input.
func Expand(template string, in Input) (string, error) {
	var b strings.Builder
	for rest := template; ; {
		before, after, ok := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return "", fmt.Errorf("template %q: a brace is closed that was not opened", template)
		}
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, next, ok := strings.Cut(after, "}")
		if !ok {
			return "", fmt.Errorf("template %q: a brace is not closed", template)
		}
		value, ok := placeholders[name]
		if !ok {
			return "", fmt.Errorf("template %q: {%s} is not known; there are {tenant}, {subject}, {conversation}", template, name)
		}
		b.WriteString(value(in))
		rest = next
	}
}
