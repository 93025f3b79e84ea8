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
	// historyLimit limits how long the end of a turn waits for the callback history.
	historyLimit = 3 * time.Second
	// historyPause is the time between two requests for the list. Servers of July 2026 store an answer only after its last frame.
	historyPause = 100 * time.Millisecond
)

// errNotListed means that the server didn't list the answer within historyLimit.
var errNotListed = errors.New("the answer is not in the server's list")

// callbackHistory completes the last frame of a turn with the history of its callbacks. The stream contains callbacks only as
// snapshots of the whole text; their separate entries are only in the server's list of messages.
type callbackHistory struct {
	agent        *Agent
	emitter      *agent.Emitter
	conversation string
	text         string // of the message that was sent

	hasToken       bool // the stream has contained a token
	hasReplacement bool // a later token replaced the text instead of appending, so a history exists
}

// frame has the fields of a chat frame that the history needs.
type frame struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	FullText json.RawMessage `json:"fullText"`
	ID       string          `json:"messageId"`
	User     string          `json:"userMessageId"`
	History  []string        `json:"actionCallbackHistory"`
}

// complete returns f, or if f is the last frame of the turn, f with the callback history. If the history can't
// be read, the answer is shown without it. The list is requested only once for each turn, at its end, while the
// viewers already see the whole text.
//
// The first snapshot-like token isn't a sign of callbacks, since a server may send a whole answer as one token.
func (t *callbackHistory) complete(ctx context.Context, f dialect.Frame) dialect.Frame {
	var in frame
	if json.Unmarshal(f.Data, &in) != nil {
		return f // the decoder reports the error
	}
	switch {
	case in.Type == "token":
		// A snapshot repeats the whole text: it has no delta, or one that equals the text. The first token of an answer looks
		// the same, so only a later one shows that there were callbacks.
		isSnapshot := in.FullText != nil && (in.Text == nil || string(in.Text) == string(in.FullText))
		t.hasReplacement = t.hasReplacement || t.hasToken && isSnapshot
		t.hasToken = true
		return f
	case in.Type != "done" || in.History != nil:
		return f
	}
	history, err := t.waitForHistory(ctx, in)
	if err != nil {
		t.emitter.Log().Warn("callback history not available", "error", err)
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

// waitForHistory reads the callback history of the turn that has just ended. If the stream contained a snapshot, the answer
// must have a history, so it waits until the server lists the answer; otherwise it reads the list once.
func (t *callbackHistory) waitForHistory(ctx context.Context, end frame) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	// An answer that the server doesn't list has no history, unless the stream has shown that there is one: then the server
	// hasn't stored the answer yet.
	for {
		history, isListed, err := t.readHistory(ctx, end)
		if err != nil || isListed || !t.hasReplacement {
			return history, err
		}
		if retry.Sleep(ctx, historyPause) != nil {
			return nil, errNotListed
		}
	}
}

// readHistory reads the list once. It returns the callback histories of the agent's messages after the user's message, and
// whether the list contains the answer. The user's message is found by its id or, on servers whose last frame doesn't name it,
// by its text.
func (t *callbackHistory) readHistory(ctx context.Context, end frame) (history []string, isListed bool, err error) {
	req, err := call.JSON(ctx, http.MethodGet, call.Path(t.agent.base, "api", "conversations", t.conversation, "messages"), t.agent.cfg.Token, nil)
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
		case m.Role == "user": // a later message of the user starts over, so the result belongs to the last match
			inTurn = m.ID == end.User || end.User == "" && strings.TrimSpace(m.Text) == strings.TrimSpace(t.text)
			history, isListed = nil, false
		case inTurn:
			history, isListed = append(history, m.History...), isListed || end.ID == "" || m.ID == end.ID
		}
	}
	return history, isListed, nil
}
