// Reading a session's history, whose rows have several forms in the versions of the gateway.

package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	// historyRows is enough for a turn with many tools, and historyChars for any text as a whole. Most reads need only endRows: little
	// is missing at the end of a run, and little is new in a session that is followed.
	historyRows  = 200
	endRows      = 50
	historyChars = 500_000
)

// historyParams are the parameters of chat.history. The gateway returns the newest Limit rows.
type historyParams struct {
	Session  string `json:"sessionKey"`
	Limit    int    `json:"limit"`
	MaxChars int    `json:"maxChars,omitempty"`
}

// sessionHistory is a session's history: its newest rows, oldest first, with the run in progress and the queued messages.
type sessionHistory struct {
	Messages []row     `json:"messages"`
	InFlight *inFlight `json:"inFlightRun"`
	Info     struct {
		Active *bool    `json:"hasActiveRun"`
		Runs   []string `json:"activeRunIds"` // all active runs; nil if the gateway doesn't know
	} `json:"sessionInfo"`
	Pending struct {
		Items []struct {
			Run   string `json:"runId"`
			State string `json:"state"`
		} `json:"items"`
	} `json:"pendingInputs"`
}

// inFlight is the run in progress. The gateway looks for it after it has read the rows, so it may be newer than they are.
type inFlight struct {
	Run string `json:"runId"`
}

// row is a row of a history: a message, a tool's result, or a note of the gateway.
type row struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	StopReason string          `json:"stopReason"`
	Error      string          `json:"errorMessage"`
	Key        string          `json:"idempotencyKey"`
	Custom     string          `json:"customType"`
	Usage      json.RawMessage `json:"usage"`
	Timestamp  int64           `json:"timestamp"`
	Abort      *struct {
		Run    string `json:"runId"`
		Origin string `json:"origin"`
	} `json:"openclawAbort"`
	Provenance struct {
		Kind string `json:"kind"`
		Tool string `json:"sourceTool"`
	} `json:"provenance"`
	Meta struct {
		Run       string `json:"runId"`
		Steer     string `json:"steerTargetRunId"`
		ID        string `json:"id"`
		Seq       int64  `json:"seq"`
		Boundary  bool   `json:"turnBoundary"` // the message before it is hidden
		Transport struct {
			Clients []struct {
				ID string `json:"id"`
			} `json:"clients"`
		} `json:"transport"`
	} `json:"__openclaw"`

	raw       json.RawMessage // the undecoded row
	forwarded bool            // a prompt of a schedule or of another session; Role is then user, although the gateway shows another
}

// writtenAt returns when the row was written, by the gateway's clock.
func (r *row) writtenAt() time.Time { return time.UnixMilli(r.Timestamp) }

// UnmarshalJSON decodes a row and stores its raw JSON too, which the decoder needs whole.
func (r *row) UnmarshalJSON(b []byte) error {
	type plain row
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	r.raw = append(json.RawMessage(nil), b...)
	if r.isForwarded() {
		r.forwarded, r.Role = true, "user"
	}
	return nil
}

// historyFrame returns rows as the frame of a history, each with the id of the run. Rows of protocol 3 don't name their run,
// and a decoder ignores such rows.
func historyFrame(rows []row, run string) ([]byte, error) {
	var messages []map[string]json.RawMessage
	for _, r := range rows {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(r.raw, &fields); err != nil {
			return nil, fmt.Errorf("row of a history: %w", err)
		}
		if fields == nil {
			continue // the row is null
		}
		fields["__openclaw"] = mustJSON(map[string]string{"runId": run})
		messages = append(messages, fields)
	}
	return mustJSON(map[string]any{"type": "res", "id": "history", "ok": true, "payload": map[string]any{"messages": messages}}), nil
}

// block is a block of a row's content: text, a file or a tool call.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Artifact string `json:"artifactId"`
	URL      string `json:"url"`
	Alt      string `json:"alt"`
	Name     string `json:"fileName"`
	MIME     string `json:"mimeType"`
	Data     string `json:"data"`
	// Attachment is set in a block of type attachment_error: the gateway could not store the file.
	Attachment *struct {
		Code  string `json:"code"`
		Label string `json:"label"`
	} `json:"attachment"`
	Source *struct {
		Type string `json:"type"`
		MIME string `json:"media_type"`
		Data string `json:"data"`
	} `json:"source"`
}

// blocks returns the row's content, which may also be a single string. Content of any other shape has no blocks.
func (r *row) blocks() []block {
	var text string
	if json.Unmarshal(r.Content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var b []block
	if json.Unmarshal(r.Content, &b) != nil {
		return nil
	}
	return b
}

// text returns the row's text blocks, separated by blank lines.
func (r *row) text() string {
	var texts []string
	for _, b := range r.blocks() {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// history reads the newest rows of the turn's session. raw is the frame with the response.
func (t *turn) history(ctx context.Context, conn *connection, rows int) (history *sessionHistory, raw []byte, err error) {
	history, raw, err = askHistory(ctx, conn, t.session, rows)
	if err == nil {
		t.lastHeard = time.Now()
	}
	return history, raw, err
}

// readHistory reads the newest rows of any session.
func readHistory(ctx context.Context, conn *connection, session string, rows int) (*sessionHistory, error) {
	history, _, err := askHistory(ctx, conn, session, rows)
	return history, err
}

// askHistory reads the newest rows of a session, and returns the raw frame too. Gateways before protocol 4 refuse MaxChars.
func askHistory(ctx context.Context, conn *connection, session string, rows int) (history *sessionHistory, raw []byte, err error) {
	p := historyParams{Session: session, Limit: rows}
	if conn.protocol() >= numberedProtocol {
		p.MaxChars = historyChars
	}
	r, err := conn.ask(ctx, "chat.history", p, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("chat.history: %w", err)
	}
	history = &sessionHistory{}
	if err := json.Unmarshal(r.frame.Payload, history); err != nil {
		return nil, nil, fmt.Errorf("chat.history: %w", err)
	}
	return history, r.raw, nil
}
