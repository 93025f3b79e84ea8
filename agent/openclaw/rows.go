// Finding a turn's rows in a history: its prompt, the rows of its answer, and the run that follows it.

package openclaw

import (
	"slices"
	"strings"
	"time"
)

// runQuery identifies a run in a history. Rows of protocol 4 name their run. Before that the rows of a run are those after its
// message, which is found by its text and time.
type runQuery struct {
	run      string
	text     string    // of the message that the run answers
	after    time.Time // when the message was sent, by the gateway's clock; older rows don't match
	protocol int
}

// rowsOf returns the rows of a run, without its message.
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

// promptIndex returns the index of the message that a run answers, or -1 if the history doesn't contain it.
func (h *sessionHistory) promptIndex(q runQuery) int {
	if q.protocol >= numberedProtocol {
		return h.lastUserRow(func(r *row) bool { return r.Key == q.run+":user" })
	}
	return h.lastUserRow(func(r *row) bool {
		old := r.Timestamp != 0 && time.UnixMilli(r.Timestamp).Before(q.after)
		return !old && strings.Contains(r.text(), strings.TrimSpace(q.text))
	})
}

// lastUserRow returns the index of the last user message for which is returns true, or -1.
func (h *sessionHistory) lastUserRow(is func(*row) bool) int {
	for i := len(h.Messages) - 1; i >= 0; i-- {
		if r := &h.Messages[i]; r.Role == "user" && is(r) {
			return i
		}
	}
	return -1
}

// rowsAfter returns the rows between the message at an index and the next user message.
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

// isQueued reports whether the gateway queues the run's message until the session is free.
func (h *sessionHistory) isQueued(run string) bool {
	for _, p := range h.Pending.Items {
		if p.Run == run && p.State == "queued" {
			return true
		}
	}
	return false
}

// collectedPrefix begins the key of a message into which the gateway merged the queued ones.
const collectedPrefix = "followup-collect:"

// answering returns the run with another id that answers the message of a queued run, or "" if no run does. The result is
// certain if it comes from rows. A run in progress may answer a later message, which the rows don't show yet.
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
		return f.Run, false // it has no rows yet
	}
	return "", true
}

// isActive reports whether the gateway runs a run. restarted is true if the gateway's process is younger than the run.
func (h *sessionHistory) isActive(run string, restarted bool) bool {
	if h.InFlight != nil && h.InFlight.Run == run || slices.Contains(h.Info.Runs, run) {
		return true
	}
	// The gateway doesn't name the active run. It may be this one unless the gateway has restarted since.
	return h.Info.Active != nil && *h.Info.Active && h.Info.Runs == nil && h.InFlight == nil && !restarted
}

// recoveryTool is the provenance of the message with which a restarted gateway continues an interrupted run.
const recoveryTool = "main_session_restart_recovery"

// successor returns the run with which a restarted gateway continues a turn, or "" if it doesn't. That run begins with a message
// of the gateway itself (recoveryTool) after a message of the turn. isMessage and isOwn report whether an id is that of a
// message of the turn or of one of its runs; the two differ for a message that was queued. Whether the result is certain
// follows the rule of [sessionHistory.answering].
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
		return h.InFlight.Run, false // its message is not in the history yet
	}
	return next, true
}

// endFrame returns the end of a run as the chat frame that reports it, made from the run's rows. It returns nil if the rows
// don't show an end. The last row with a stop reason decides: toolUse, or no reason, means that the run continued after the row.
// An abort or a failure row has no stop reason and ends the run by itself. The frame has the texts of all assistant rows, except
// warnings of the gateway; for protocol 3 only the last text.
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
		texts = texts[len(texts)-1:] // as in final frames of protocol 3
	}
	if len(texts) > 0 {
		p["message"] = map[string]any{"role": "assistant", "content": []map[string]string{{"type": "text", "text": strings.Join(texts, "\n\n")}}}
	}
	p["state"] = state
	return mustJSON(map[string]any{"type": "event", "event": "chat", "payload": p})
}

// warningSuffix ends the key of a row in which the gateway itself reports that the run failed.
const warningSuffix = ":terminal-error"

// failedEndFrame returns the end of a run, and whether its model failed. Before protocol 4 the gateway's own frame reports such
// a run as complete.
func failedEndFrame(session, run string, rows []row) (end []byte, failed bool) {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Role == "assistant" {
			return endFrame(session, run, rows, minProtocol), rows[i].StopReason == "error"
		}
	}
	return nil, false
}

// truncationMark ends a text that a history contains in part.
const truncationMark = "\n...(truncated)..."

// visibleText returns a text as viewers see it: without the truncation mark and without lines that name files.
func visibleText(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, truncationMark), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "MEDIA:") })
	return strings.Join(lines, "\n")
}
