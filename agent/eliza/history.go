package eliza

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// historyLimit bounds how long the end of a turn waits for the history of its callbacks.
	historyLimit = 3 * time.Second
	// historyPause is the time between two looks at the server's list. Servers of July 2026 store an answer after its last frame.
	historyPause = 100 * time.Millisecond
)

var errNotListed = errors.New("the answer is not in the server's list")

// trail completes the last frame of a turn by the history of its callbacks. The stream doesn't have it: callbacks come as snapshots of
// the whole text, and the server's list of messages alone has the entries.
type callbackHistory struct {
	agent        *Agent
	emitter      *agent.Emitter
	conversation string
	text         string // the message that was sent

	hasToken       bool // a token came
	hasReplacement bool // and a later one did not just append: the list will have a history
}

// frame is a frame of the chat, as far as the history needs it.
type frame struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	FullText json.RawMessage `json:"fullText"`
	ID       string          `json:"messageId"`
	User     string          `json:"userMessageId"`
	History  []string        `json:"actionCallbackHistory"`
}

// complete returns the frame to decode in place of f.
func (t *callbackHistory) complete(ctx context.Context, f dialect.Frame) dialect.Frame {
	var in frame
	if json.Unmarshal(f.Data, &in) != nil {
		return f // the decoder says what is wrong
	}
	switch {
	case in.Type == "token":
		isSnapshot := in.FullText != nil && (in.Text == nil || string(in.Text) == string(in.FullText))
		t.hasReplacement = t.hasReplacement || t.hasToken && isSnapshot
		t.hasToken = true
		return f
	case in.Type != "done" || in.History != nil:
		return f
	}
	history, err := t.waitForHistory(ctx, in)
	if err != nil {
		t.emitter.Log().Warn("the callback history of an answer is not known", "error", err)
	}
	if len(history) == 0 {
		return f
	}
	var fields map[string]any
	if json.Unmarshal(f.Data, &fields) != nil {
		return f
	}
	fields["actionCallbackHistory"] = history
	if b, err := json.Marshal(fields); err == nil {
		f.Data = b
	}
	return f
}

// history reads the callback history of the turn that has just ended. An answer that is not listed has none, unless its stream shows
// that it has.
func (t *callbackHistory) waitForHistory(ctx context.Context, end frame) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	for {
		history, isListed, err := t.isListed(ctx, end)
		if err != nil || isListed || !t.hasReplacement {
			return history, err
		}
		if retry.Sleep(ctx, historyPause) != nil {
			return nil, errNotListed
		}
	}
}

// listed looks at the list once: at what the agent said after the message that was sent.
func (t *callbackHistory) isListed(ctx context.Context, end frame) (history []string, isListed bool, err error) {
	req, err := call.JSON(ctx, http.MethodGet, t.agent.base.JoinPath("api/conversations", t.conversation, "messages"), t.agent.cfg.Token, nil)
	if err != nil {
		return nil, false, err
	}
	var list struct {
		Messages []struct {
			ID      string   `json:"id"`
			Role    string   `json:"role"`
			Text    string   `json:"text"`
			History []string `json:"actionCallbackHistory"`
		} `json:"messages"`
	}
	if err := call.Do(t.agent.client, req, &list); err != nil {
		return nil, false, fmt.Errorf("list messages: %w", err)
	}
	inTurn := false
	for _, m := range list.Messages {
		switch {
		case m.Role == "user":
			inTurn = m.ID == end.User || end.User == "" && strings.TrimSpace(m.Text) == strings.TrimSpace(t.text)
			history, isListed = nil, false
		case inTurn:
			history, isListed = append(history, m.History...), isListed || end.ID == "" || m.ID == end.ID
		}
	}
	return history, isListed, nil
}
