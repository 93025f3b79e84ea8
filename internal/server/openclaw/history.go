// The history of a session, bounded by rows and by bytes.

package openclaw

import (
	"strings"

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

// historyParams are the parameters of chat.startup and chat.history. Zero means the default.
type historyParams struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	Limit      int    `json:"limit"`    // in rows
	MaxBytes   int    `json:"maxBytes"` // of all rows
	// Offset is how many of the newest rows to leave out.
	Offset int `json:"offset"`
}

// limit replaces values that are missing or too large.
func (p *historyParams) limit() {
	if p.Limit <= 0 {
		p.Limit = defaultRows
	}
	p.Limit, p.Offset = min(p.Limit, maxRows), max(p.Offset, 0)
	if p.MaxBytes <= 0 || p.MaxBytes > maxHistory {
		p.MaxBytes = maxHistory
	}
}

// historyPage is the response. The newest row is the last one.
type historyPage struct {
	SessionKey string    `json:"sessionKey"`
	SessionID  string    `json:"sessionId"`
	Messages   []message `json:"messages"`
	HasMore    bool      `json:"hasMore"`
	// NextOffset is the offset of the page before.
	NextOffset *int `json:"nextOffset,omitempty"`
	// TotalMessages is known only if the page has the beginning of the conversation.
	TotalMessages *int         `json:"totalMessages,omitempty"`
	SessionInfo   *sessionRow  `json:"sessionInfo"`
	InFlight      *inFlightRun `json:"inFlightRun,omitempty"`

	offset int
}

// inFlightRun is the unfinished run of a session, with the events that a client needs to show it.
type inFlightRun struct {
	RunID     string `json:"runId"`
	Text      string `json:"text"`
	StartedAt int64  `json:"startedAt"` // epoch milliseconds; 0 if the run is queued
	// Events are those of its tools. The text needs none.
	Events    []agentEvent `json:"events"`
	Abortable bool         `json:"sessionAbortable"`
}

// history answers chat.startup and chat.history. From the transcript in its response on, the client gets events.
func (c *connection) history(rq *request, p *historyParams) (any, error) {
	p.limit()
	k, err := c.parseKey(p.SessionKey, p.AgentID)
	if err != nil {
		return nil, err
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
		if page = s.page(t, conversation, p); page == nil {
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
	row := emptyRow(k, id)
	return &historyPage{SessionKey: k.full, SessionID: id, Messages: []message{}, SessionInfo: &row}, nil
}

// page returns a page of a transcript, or nil if it needs older messages than t has.
func (s *session) page(t *transcript.Transcript, conversation *journal.Summary, p *historyParams) *historyPage {
	page := &historyPage{SessionKey: s.key.full, SessionID: s.conversation, Messages: []message{}, offset: p.Offset}
	inFlight, turn := s.inFlight(t)
	if p.Offset == 0 {
		page.InFlight = inFlight
	}
	end := p.Offset + p.Limit
	rows := newestRows(t, turn, end+1) // one more, to know whether there is a page before
	if t.Earlier && len(rows) < end {
		return nil
	}
	page.HasMore = t.Earlier || len(rows) > end
	if page.HasMore {
		page.NextOffset = &end
		rows = rows[max(len(rows)-end, 0):]
	} else {
		total := len(rows)
		page.TotalMessages = &total
	}
	page.Messages = append(page.Messages, rows[:max(len(rows)-p.Offset, 0)]...)
	info := rowOf(s.key, conversation)
	info.ActiveRunIDs = activeRuns(t)
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

// fit removes the oldest rows of a page until it has at most a number of bytes. If the last row alone has more, it is shortened.
func (page *historyPage) fit(limit int) {
	size, start := 0, len(page.Messages)
	for start > 0 {
		if size += page.Messages[start-1].size(); size > limit {
			break
		}
		start--
	}
	if start == 0 {
		return
	}
	if last := len(page.Messages) - 1; start > last {
		page.Messages[last].shorten(max(limit, minRowBytes))
		start = last
		if start == 0 {
			return
		}
	}
	page.Messages = page.Messages[start:]
	next := page.offset + len(page.Messages)
	page.HasMore, page.NextOffset, page.TotalMessages = true, &next, nil
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
