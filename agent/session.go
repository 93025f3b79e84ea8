package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrNoSession is returned if a turn's sink can't store sessions, or if a conversation has no session (see [Sessions]).
var ErrNoSession = errors.New("agent: no session")

// SessionSink is a sink that stores an agent's session with the conversation; see [Emitter.KeepSession].
type SessionSink interface {
	KeepSession(ctx context.Context, session json.RawMessage) error
}

// KeepSession stores the identifiers under which the upstream knows the conversation, such as the id of its session. Later turns of this
// conversation with this agent get them as [Input].Session. The session is JSON in a format that the agent chooses, at most [MaxSession]
// bytes, and is durable when KeepSession returns; nil deletes it. It is deleted with the conversation, and also when all messages of the
// conversation are deleted, so that the upstream doesn't remember deleted messages.
func (e *Emitter) KeepSession(ctx context.Context, session json.RawMessage) error {
	s, ok := e.sink.(SessionSink)
	if !ok {
		return ErrNoSession
	}
	return s.KeepSession(ctx, session)
}

// MaxSession is the maximum size of a session, in bytes.
const MaxSession = 4 << 10

// placeholders are the names that [Expand] replaces.
var placeholders = map[string]func(Input) string{
	"tenant":       func(in Input) string { return in.Principal.Tenant },
	"subject":      func(in Input) string { return in.Principal.Subject },
	"conversation": func(in Input) string { return in.Conversation },
}

// Expand replaces {tenant}, {subject} and {conversation} in a template, such as leat-{tenant}-{conversation}, with the values of a turn's
// input. Other names in braces, and unmatched braces, are errors. To check a template, call Expand with an empty Input.
func Expand(template string, in Input) (string, error) {
	var b strings.Builder
	for tail := template; ; {
		before, after, ok := strings.Cut(tail, "{")
		if strings.Contains(before, "}") {
			return "", fmt.Errorf("template %q: unmatched }", template)
		}
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, next, ok := strings.Cut(after, "}")
		if !ok {
			return "", fmt.Errorf("template %q: unmatched {", template)
		}
		value, ok := placeholders[name]
		if !ok {
			return "", fmt.Errorf("template %q: unknown placeholder {%s}; use {tenant}, {subject} or {conversation}", template, name)
		}
		b.WriteString(value(in))
		tail = next
	}
}
