// The messages of a history as the REST API returns them, page by page.

package letta

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	rowAnswer   = "assistant_message"
	rowRequest  = "approval_request_message"
	rowResponse = "approval_response_message"

	waitingStop = "requires_approval"
)

// storedMessage is a message in the V1 API's history. The messages of one step have the same id.
type storedMessage struct {
	ID      string          `json:"id"`
	Date    time.Time       `json:"date"`
	Type    string          `json:"message_type"`
	Otid    string          `json:"otid"` // for a user's message: as its client has sent it
	Run     string          `json:"run_id"`
	Content json.RawMessage `json:"content"`
	Calls   json.RawMessage `json:"tool_calls"`
	CallID  string          `json:"tool_call_id"` // for a tool's result: the call
	Answers []struct {
		Type  string `json:"type"`
		Call  string `json:"tool_call_id"`
		Allow bool   `json:"approve"`
	} `json:"approvals"`

	raw json.RawMessage
}

// text returns the text of a user's message. Other parts, such as images, are replaced by their type in brackets.
func (m *storedMessage) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		default:
			texts = append(texts, "["+p.Type+"]")
		}
	}
	return strings.Join(texts, "\n\n")
}

// calls returns the ids of the tool calls in a message.
func (m *storedMessage) calls() (ids []string) {
	var calls []struct {
		ID string `json:"tool_call_id"`
	}
	if json.Unmarshal(m.Calls, &calls) != nil {
		return nil // it calls no tool
	}
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}

// pageStored is how many steps of a history are requested at once. A step has several messages, so a page may be longer.
const pageStored = 50

// storedMessages reads the messages after the one with the given id, or all of them if after is empty, the oldest first.
func (r *restAgent) storedMessages(ctx context.Context, query url.Values, after string, path ...string) (messages []*storedMessage, err error) {
	for {
		query.Set("order", "asc")
		query.Set("limit", strconv.Itoa(pageStored))
		if after != "" {
			query.Set("after", after)
		}
		page, err := r.storedPage(ctx, query, path...)
		if err != nil {
			return nil, err
		}
		messages = append(messages, page...)
		// A short page is the last one. A page that ends at the cursor again comes from a server that ignores it.
		if distinct(page) < pageStored || page[len(page)-1].ID == after {
			return messages, nil
		}
		after = page[len(page)-1].ID
	}
}

// storedPage reads one page of messages, in the order that the query names.
func (r *restAgent) storedPage(ctx context.Context, query url.Values, path ...string) ([]*storedMessage, error) {
	var raw []json.RawMessage
	if err := r.callJSON(ctx, &raw, http.MethodGet, query, nil, path...); err != nil {
		return nil, err
	}
	page := make([]*storedMessage, 0, len(raw))
	for _, b := range raw {
		m := &storedMessage{raw: b}
		if err := json.Unmarshal(b, m); err != nil {
			return nil, &failure{code: codeStatus, message: "the Letta server sent an invalid response; is the target a Letta server with the V1 API?", detail: err.Error()}
		}
		page = append(page, m)
	}
	return page, nil
}

// distinct counts the steps in a page, since the server's limit counts steps.
func distinct(page []*storedMessage) (n int) {
	for i, m := range page {
		if i == 0 || m.ID != page[i-1].ID {
			n++
		}
	}
	return n
}

// answeredCall returns the first tool call that the approvals in a message answer.
func (m *storedMessage) answeredCall() string {
	for _, a := range m.Answers {
		if a.Call != "" {
			return a.Call
		}
	}
	return ""
}
