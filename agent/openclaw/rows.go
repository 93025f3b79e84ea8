package openclaw

import (
	"slices"
	"strings"
	"time"
)

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
