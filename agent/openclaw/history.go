package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// historyRows and historyChars bound what is asked for: the rows of one turn with many tools, and any text as a whole.
	// Most reads need only endRows: little is missing at a run's end, and little is new in a session that is followed.
	historyRows  = 200
	endRows      = 50
	historyChars = 500_000
)

type historyParams struct {
	Session  string `json:"sessionKey"`
	Limit    int    `json:"limit"`
	MaxChars int    `json:"maxChars,omitempty"`
}

// history is what a session's history says.
type sessionHistory struct {
	Messages []row     `json:"messages"`
	InFlight *inFlight `json:"inFlightRun"`
	Info     struct {
		Active *bool    `json:"hasActiveRun"`
		Runs   []string `json:"activeRunIds"` // all that are active; nil is not known
	} `json:"sessionInfo"`
	Pending struct {
		Items []struct {
			Run   string `json:"runId"`
			State string `json:"state"`
		} `json:"items"`
	} `json:"pendingInputs"`
}

type inFlight struct {
	Run string `json:"runId"`
}

// row is a row of a history.
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

	raw       json.RawMessage // as it came
	forwarded bool            // a prompt of a schedule or of another session; Role is then user, whatever the gateway shows
}

// at returns when the row was written.
func (r *row) writtenAt() time.Time { return time.UnixMilli(r.Timestamp) }

// UnmarshalJSON reads a row and keeps it as it came.
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

// named makes the frame of a history in which the rows name their run, as those of protocol 4 do by themselves.
func historyFrame(rows []row, run string) ([]byte, error) {
	var messages []map[string]json.RawMessage
	for _, r := range rows {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(r.raw, &fields); err != nil {
			return nil, fmt.Errorf("row of a history: %w", err)
		}
		if fields == nil {
			continue // null is no row
		}
		fields["__openclaw"] = mustJSON(map[string]string{"runId": run})
		messages = append(messages, fields)
	}
	return mustJSON(map[string]any{"type": "res", "id": "history", "ok": true, "payload": map[string]any{"messages": messages}}), nil
}

// block is a piece of a row's content.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Artifact string `json:"artifactId"`
	URL      string `json:"url"`
	Alt      string `json:"alt"`
	Name     string `json:"fileName"`
	MIME     string `json:"mimeType"`
	Data     string `json:"data"`
	// Attachment is one that the gateway could not store, in a block of type attachment_error.
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

// blocks reads a row's content, which may also be a string.
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

// text is what a row says.
func (r *row) text() string {
	var texts []string
	for _, b := range r.blocks() {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// history asks for the session's history. raw is the frame that it came in.
func (t *turn) history(ctx context.Context, conn *connection, rows int) (history *sessionHistory, raw []byte, err error) {
	history, raw, err = askHistory(ctx, conn, t.session, rows)
	if err == nil {
		t.lastHeard = time.Now()
	}
	return history, raw, err
}

func readHistory(ctx context.Context, conn *connection, session string, rows int) (*sessionHistory, error) {
	history, _, err := askHistory(ctx, conn, session, rows)
	return history, err
}

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

// question is what a history is asked about a run. Before protocol 4 histories name no runs: there the message says which rows
// are the run's.
type runQuery struct {
	run      string
	text     string    // of the message that the run answers
	after    time.Time // when it was sent, by the gateway's clock
	protocol int
}

// of returns the rows of a run.
func (h *sessionHistory) rowsOf(q runQuery) []row {
	if q.protocol < numberedProtocol {
		return h.rowsAfter(h.promptIndex(q))
	}
	var rows []row
	for _, r := range h.Messages {
		if r.Meta.Run == q.run || r.Abort != nil && r.Abort.Run == q.run || strings.HasPrefix(r.Key, q.run+":") && r.Role != "user" {
			rows = append(rows, r)
		}
	}
	return rows
}

// user returns the index of the message that a run answers, -1 if the history does not have it.
func (h *sessionHistory) promptIndex(q runQuery) int {
	if q.protocol >= numberedProtocol {
		return h.lastUserRow(func(r *row) bool { return r.Key == q.run+":user" })
	}
	return h.lastUserRow(func(r *row) bool {
		old := r.Timestamp != 0 && time.UnixMilli(r.Timestamp).Before(q.after)
		return !old && strings.Contains(r.text(), strings.TrimSpace(q.text))
	})
}

// last returns the index of the last message of a user that a condition holds for, -1 if there is none.
func (h *sessionHistory) lastUserRow(is func(*row) bool) int {
	for i := len(h.Messages) - 1; i >= 0; i-- {
		if r := &h.Messages[i]; r.Role == "user" && is(r) {
			return i
		}
	}
	return -1
}

// behind returns the rows between the message at an index and the next one of a user.
func (h *sessionHistory) rowsAfter(user int) []row {
	if user < 0 {
		return nil
	}
	rows := h.Messages[user+1:]
	if n := slices.IndexFunc(rows, func(r row) bool { return r.Role == "user" }); n >= 0 {
		rows = rows[:n]
	}
	return rows
}

// queued reports whether the gateway keeps the message of a run until the session is free.
func (h *sessionHistory) isQueued(run string) bool {
	for _, p := range h.Pending.Items {
		if p.Run == run && p.State == "queued" {
			return true
		}
	}
	return false
}

// collected begins the key of a message that the gateway made of those that had to wait.
const collectedPrefix = "followup-collect:"

// answering returns the run of another id that answers the message of a run which had to wait, "" if there is none yet. Rows are sure; a run
// in progress may answer a later message, which the rows don't show yet.
func (h *sessionHistory) answering(q runQuery, wasQueued bool) (run string, certain bool) {
	if q.protocol < numberedProtocol {
		return "", true
	}
	user := h.promptIndex(q)
	if user < 0 && wasQueued {
		user = h.lastUserRow(func(r *row) bool {
			return strings.HasPrefix(r.Key, collectedPrefix) && strings.Contains(r.text(), strings.TrimSpace(q.text))
		})
	}
	if user < 0 || h.Messages[user].Meta.Steer != "" {
		return "", true
	}
	rows := h.rowsAfter(user)
	for i := range rows {
		switch run := rows[i].Meta.Run; {
		case run == "", hiddenPrompt(run, &rows[i]) != (prompt{}):
		case run == q.run:
			return "", true
		default:
			return run, true
		}
	}
	newest := user+1+len(rows) == len(h.Messages)
	if f := h.InFlight; wasQueued && newest && f != nil && f.Run != q.run && hiddenPrompt(f.Run, nil) == (prompt{}) && !h.isQueued(f.Run) && h.promptIndex(runQuery{run: f.Run, protocol: q.protocol}) < 0 {
		return f.Run, false // it has said nothing yet
	}
	return "", true
}

// active reports whether the gateway runs a run. restarted says that its process is younger than the run.
func (h *sessionHistory) isActive(run string, restarted bool) bool {
	if h.InFlight != nil && h.InFlight.Run == run || slices.Contains(h.Info.Runs, run) {
		return true
	}
	// Something runs that has no name: it may be this one, if it can have lived on.
	return h.Info.Active != nil && *h.Info.Active && h.Info.Runs == nil && h.InFlight == nil && !restarted
}

// recovery is what a gateway's message comes from by which it goes on with what its restart interrupted.
const recoveryTool = "main_session_restart_recovery"

// successor returns the run by which a restarted gateway continues a turn, "" if there is none yet. It begins with a message of the
// gateway behind a message of the turn; other clients' runs begin with messages of another kind. A message is named by the run that it
// was sent with, which is not the one that answers it if it had to wait. Rows are sure, as for [history.answering].
func (h *sessionHistory) successor(isMessage, isOwn func(string) bool) (next string, certain bool) {
	pastPrompt := false
	for i := range h.Messages {
		r := &h.Messages[i]
		if r.Role != "user" {
			continue
		}
		id, ok := strings.CutSuffix(r.Key, ":user")
		switch {
		case ok && isMessage(id):
			pastPrompt = true
		case ok && pastPrompt && !isOwn(id) && r.Provenance.Tool == recoveryTool:
			next = id
		}
	}
	if next == "" && h.InFlight != nil && !isOwn(h.InFlight.Run) && hiddenPrompt(h.InFlight.Run, nil) == (prompt{}) && h.promptIndex(runQuery{run: h.InFlight.Run, protocol: numberedProtocol}) < 0 {
		return h.InFlight.Run, false // its message is not written yet
	}
	return next, true
}

// ending is a run's end as its history tells it, as the frame that did not come; nil where it tells none.
func endFrame(session, run string, rows []row, protocol int) []byte {
	p := map[string]any{"runId": run, "sessionKey": session}
	var texts []string
	state := ""
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Abort != nil:
			state = "aborted"
			p["stopReason"] = r.Abort.Origin
		case r.Role == "custom" && r.Custom == "run-failed-before-reply":
			state = "error"
			p["errorMessage"] = r.text()
		case r.Role != "assistant":
			continue
		case r.StopReason == "error":
			state = "error"
			p["errorMessage"] = r.Error
		case r.StopReason == "toolUse" || r.StopReason == "":
			state = ""
		default:
			state = "final"
			p["stopReason"] = r.StopReason
			if len(r.Usage) > 0 {
				p["usage"] = r.Usage
			}
		}
		if r.Role == "assistant" {
			if text := r.text(); text != "" && !strings.HasSuffix(r.Key, warningSuffix) {
				texts = append(texts, visibleText(text))
			}
		}
	}
	if state == "" {
		return nil
	}
	if protocol < numberedProtocol && len(texts) > 0 {
		texts = texts[len(texts)-1:] // as its finals are
	}
	if len(texts) > 0 {
		p["message"] = map[string]any{"role": "assistant", "content": []map[string]string{{"type": "text", "text": strings.Join(texts, "\n\n")}}}
	}
	p["state"] = state
	return mustJSON(map[string]any{"type": "event", "event": "chat", "payload": p})
}

// warning ends the key of a row in which the gateway itself says that the run failed.
const warningSuffix = ":terminal-error"

// broken returns the end of a run whose model broke off. Before protocol 4 the gateway's own frame calls such a run complete.
func failedEndFrame(session, run string, rows []row) (end []byte, failed bool) {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Role == "assistant" {
			return endFrame(session, run, rows, minProtocol), rows[i].StopReason == "error"
		}
	}
	return nil, false
}

// truncated is what stands at the end of a text that a history shows in part.
const truncationMark = "\n...(truncated)..."

// visible is a text without the mark of its being cut, and without the lines that name files.
func visibleText(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, truncationMark), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "MEDIA:") })
	return strings.Join(lines, "\n")
}
