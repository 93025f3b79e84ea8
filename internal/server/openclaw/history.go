// The history of a session, bounded by rows and by bytes.

package openclaw

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

const (
	defaultRows = 200
	maxRows     = 1000
	// maxHistory is the largest history in bytes, also if the client accepts more.
	maxHistory = 6 << 20
	// minRowBytes is the smallest limit for the last row's text, so that a client with a tiny limit sees something.
	minRowBytes = 1 << 10
)

// historyParams are the parameters of chat.startup and chat.history.
type historyParams struct {
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// How many entries the client wants; 0 is the default.
	Limit int `json:"limit"`
	// The limit in bytes.
	MaxBytes int `json:"maxBytes"`
	// How many entries to skip.
	Offset int `json:"offset"`
}

// historyPage is the response. The newest row is the last one, and offset counts from it.
type historyPage struct {
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The id of the conversation.
	SessionID string `json:"sessionId"`
	// The rows, oldest first.
	Messages []message `json:"messages"`
	// There are further entries.
	HasMore bool `json:"hasMore"`
	// Where the next page begins.
	NextOffset *int `json:"nextOffset,omitempty"`
	// Known only at the beginning of the conversation.
	TotalMessages *int `json:"totalMessages,omitempty"`
	// The row of the session in a list.
	SessionInfo *sessionRow `json:"sessionInfo"`
	// Nil if nothing runs.
	InFlight *inFlightRun `json:"inFlightRun,omitempty"`

	offset int
}

// inFlightRun is the unfinished run of a session, with the events that a client needs to show it.
type inFlightRun struct {
	// The run that the frame is about.
	RunID string `json:"runId"`
	// The content of a block or an item.
	Text string `json:"text"`
	// Epoch milliseconds; 0 if it has not started.
	StartedAt int64 `json:"startedAt"`
	// The events of its tools so far.
	Events []agentEvent `json:"events"`
	// The client may stop it.
	Abortable bool `json:"sessionAbortable"`
}

// history answers chat.startup and chat.history. From the transcript in its response on, the client gets events.
func (c *connection) history(rq *request) (any, error) {
	var p historyParams
	if err := json.Unmarshal(rq.Params, &p); err != nil {
		return nil, server.Invalid("invalid %s params: %v", rq.Method, err)
	}
	k, err := c.parseKey(p.SessionKey, p.AgentID)
	if err != nil {
		return nil, err
	}
	if p.Limit <= 0 {
		p.Limit = defaultRows
	}
	p.Limit, p.Offset = min(p.Limit, maxRows), max(p.Offset, 0)
	if p.MaxBytes <= 0 || p.MaxBytes > maxHistory {
		p.MaxBytes = maxHistory
	}
	conversation, err := c.find(c.ctx, k)
	if err != nil {
		return nil, err
	}
	if conversation == nil {
		return c.emptyHistory(k)
	}
	s, isNew, err := c.openSession(k, conversation.ID)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var queue []queued
	var page *historyPage
	err = c.s.gw.ViewTranscript(c.ctx, c.principal(), conversation.ID, func(t *transcript.Transcript) bool {
		if page = s.page(t, conversation, &p); page == nil {
			return false
		}
		queue = s.update(t)
		return true
	})
	if err != nil {
		return nil, err
	}
	if isNew {
		queue = nil // it is all in the history
	}
	for _, q := range queue {
		if err := c.send(q.name, q.payload); err != nil {
			return nil, err
		}
	}
	page.fit(p.MaxBytes)
	return responded{c.write(response{Type: "res", ID: rq.ID, OK: true, Payload: page})}, nil
}

// emptyHistory returns the history of a session that doesn't exist yet. Its id is that of the conversation that the first message creates.
func (c *connection) emptyHistory(k sessionKey) (any, error) {
	id, err := derivedID(c.principal(), k.full, 0)
	if err != nil {
		return nil, err
	}
	row := c.emptyRow(k, id)
	return &historyPage{SessionKey: k.full, SessionID: id, Messages: []message{}, SessionInfo: &row}, nil
}

// page returns a page of a transcript, or nil if it needs older messages than t has.
func (s *session) page(t *transcript.Transcript, conversation *journal.Summary, p *historyParams) *historyPage {
	page := &historyPage{SessionKey: s.key.full, SessionID: s.conversation, Messages: []message{}, offset: p.Offset}
	inFlight := ""
	if p.Offset == 0 {
		page.InFlight, inFlight = s.inFlight(t)
	}
	rows := rowsOf(t, inFlight)
	if t.Earlier && len(rows) < p.Offset+p.Limit {
		return nil
	}
	end := max(len(rows)-p.Offset, 0)
	start := max(end-p.Limit, 0)
	page.Messages = append(page.Messages, rows[start:end]...)
	page.HasMore = start > 0 || t.Earlier
	if page.HasMore {
		next := p.Offset + end - start
		page.NextOffset = &next
	} else {
		total := len(rows)
		page.TotalMessages = &total
	}
	info := s.c.row(conversation)
	info.Key, info.ActiveRunIDs = s.key.full, activeRuns(t)
	info.HasActiveRun = len(info.ActiveRunIDs) > 0
	page.SessionInfo = &info
	return page
}

// inFlight returns the oldest unfinished run and the id of its turn.
func (s *session) inFlight(t *transcript.Transcript) (*inFlightRun, string) {
	for _, turn := range t.Turns {
		if !turn.Unfinished() || !turn.Independent() {
			continue
		}
		// To a client that has nothing, a run sends everything.
		client := newRun(s, t, turn)
		f := &inFlightRun{RunID: client.id, StartedAt: turn.StartedAt, Events: []agentEvent{}, Abortable: true}
		for _, q := range client.update(t, turn) {
			if e, ok := q.payload.(agentEvent); ok && e.Stream == "tool" {
				f.Events = append(f.Events, e)
			}
		}
		f.Text = client.text
		return f, turn.ID
	}
	return nil, ""
}

// fit removes the oldest rows of a page until it has at most a number of bytes, and shortens the last remaining row.
func (page *historyPage) fit(limit int) {
	size := 0
	for i := len(page.Messages) - 1; i >= 0; i-- {
		n := page.Messages[i].size()
		if size += n; size <= limit {
			continue
		}
		if i == len(page.Messages)-1 {
			page.Messages[i].shorten(max(limit, minRowBytes))
			size = 0
			limit = 0
			continue
		}
		next := page.offset + len(page.Messages) - i - 1
		page.Messages = page.Messages[i+1:]
		page.HasMore, page.NextOffset, page.TotalMessages = true, &next, nil
		return
	}
}

// rowBytes estimates the bytes of a row besides its texts.
const rowBytes = 300

// size estimates the length of a row.
func (m *message) size() int {
	n := rowBytes
	for i := range m.Content {
		b := &m.Content[i]
		n += len(b.Arguments) + len(b.URL) + len(b.Alt)
		for _, text := range []*string{b.Text, b.Thinking} {
			if text != nil {
				n += len(*text)
			}
		}
	}
	return n
}

// truncationMark ends a text of which only the beginning is sent, as in OpenClaw.
const truncationMark = "\n...(truncated)..."

// shorten cuts the texts of a row. A cut doesn't split a character.
func (m *message) shorten(limit int) {
	for i := range m.Content {
		b := &m.Content[i]
		if b.Type != "text" && b.Type != "thinking" {
			continue
		}
		for _, text := range []**string{&b.Text, &b.Thinking} {
			if *text == nil {
				continue
			}
			if len(**text) > limit {
				shortened := strings.ToValidUTF8((**text)[:limit], "") + truncationMark
				*text = &shortened
				m.Meta.Truncated, m.Meta.Reason = true, "display-cap"
			}
			limit = max(limit-len(**text), 0)
		}
	}
}
