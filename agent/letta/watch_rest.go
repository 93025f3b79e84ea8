// Following one conversation over the REST API. The poller decides when its history is read.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/leat-dev/leat/agent"
)

// restWatch is a conversation whose session is followed. Only the poller's goroutine uses it.
type restWatch struct {
	agent        *restAgent
	poller       *poller
	conversation string
	session      session
	cursor       restCursor
	hasNoCursor  bool                 // no cursor is stored yet
	due          time.Time            // when the history is read next; the zero time means not before something happens
	isUrgent     bool                 // a run has started or ended, so this history is read before those that are only checked
	retryDelay   time.Duration        // pause after the last failure; 0 after a success
	newRuns      map[string]bool      // runs that the poller saw start, and that are not recorded yet
	blockingRuns map[string]time.Time // runs that the server lists without an end, and since when the watch waits for their messages
}

// newRESTWatch returns a watch that continues at the stored cursor. Its history is due at once.
func newRESTWatch(p *poller, s agent.Session, key session) *restWatch {
	w := &restWatch{agent: p.agent, poller: p, conversation: s.Conversation, session: key, due: time.Now(), newRuns: map[string]bool{}, blockingRuns: map[string]time.Time{}}
	at, ok := parseRESTCursor(s.Cursor, key)
	w.cursor, w.hasNoCursor = at, !ok
	return w
}

// readNow makes the history due at once, before those that are not urgent.
func (w *restWatch) readNow() { w.due, w.isUrgent = time.Now(), true }

// readBy makes the history due at the given time at the latest.
func (w *restWatch) readBy(at time.Time) {
	if w.due.IsZero() || at.Before(w.due) {
		w.due = at
	}
}

// hasRun reports whether a run belongs to the conversation. The runs of an agent's default conversation are listed without a
// conversation, as are blocking runs of any conversation, which therefore don't count.
func (w *restWatch) hasRun(i runInfo) bool {
	if w.session.Conversation == ownConversation {
		return i.Conversation == "" && i.Metadata.Type != blockingType && i.Agent == w.session.Agent
	}
	return i.Conversation == w.session.Conversation
}

// history returns the query and the path of the session's messages.
func (s session) history() (query url.Values, path []string) {
	query = s.query()
	if query == nil {
		query = url.Values{}
	}
	return query, []string{"conversations", s.Conversation, "messages"}
}

// readHistory reads the history after the cursor and records what happened there, together with the new cursor. runs are the
// agent's newest runs. The cursor stops before the first turn that isn't complete, so that the next reading sees it whole.
func (w *restWatch) readHistory(ctx context.Context, runs map[string]runInfo) error {
	r := w.agent
	at := w.cursor
	if w.hasNoCursor && r.cfg.Conversation != "" { // a session that Leat created for the conversation has no past
		start, err := w.startRow(ctx)
		if err != nil {
			return err
		}
		at.Row = start
	}
	query, path := w.session.history()
	rows, err := r.storedMessages(ctx, query, at.Row, path...)
	if f, ok := errors.AsType[*failure](err); ok && f.status == http.StatusNotFound && at.Row != "" {
		// The messages were deleted, as by a reset. The gateway recognizes entries that it has already, by their keys.
		query, path = w.session.history()
		rows, err = r.storedMessages(ctx, query, "", path...)
	}
	if err != nil {
		return err
	}
	g := &collector{watch: w, runs: runs, recorded: slices.Clone(at.Runs)}
	turns, turnOf := storedTurns(rows)
	for i, x := range turns {
		if err := g.addTurn(ctx, x, len(turns)-1-i); err != nil {
			return err
		}
	}
	g.addUnstored(turns)
	// Complete turns after an incomplete one are read again next time. The runs in the cursor keep them from being recorded twice.
	for i, m := range rows {
		if turnOf[i] != nil && !turnOf[i].isComplete {
			break
		}
		at.Row = m.ID
	}
	for _, x := range turns {
		if x.isComplete {
			at.Runs = appendRecent(at.Runs, x.runs)
		}
	}
	w.rereadForBlocking(turns)
	if len(g.entries) == 0 && !w.hasNoCursor && at.Row == w.cursor.Row && slices.Equal(at.Runs, w.cursor.Runs) {
		return nil
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := w.poller.sessions.Add(ctx, w.conversation, g.entries, raw); err != nil {
		return fmt.Errorf("record a session's new messages: %w", err)
	}
	w.cursor, w.hasNoCursor = at, false
	return nil
}

// startRow returns the row with which following begins: the last one before the messages of the conversation's running turns.
// Older messages existed before the conversation of Leat did, and are not recorded.
func (w *restWatch) startRow(ctx context.Context) (row string, err error) {
	query, path := w.session.history()
	query.Set("order", "desc")
	query.Set("limit", strconv.Itoa(pageStored))
	page, err := w.agent.storedPage(ctx, query, path...)
	if err != nil {
		return "", err
	}
	ownMessages := map[string]bool{}
	for _, t := range w.agent.turnsOf(w.conversation) {
		ownMessages[clientID(t.in, t.in.Message.ID)] = true
	}
	oldestOwn := -1
	for i, m := range page {
		if ownMessages[m.Otid] {
			oldestOwn = i
		}
	}
	for _, m := range page[oldestOwn+1:] {
		if oldestOwn < 0 || m.ID != page[oldestOwn].ID {
			return m.ID, nil
		}
	}
	return "", nil
}

// appendRecent adds runs to a cursor's runs, and keeps the newest maxCursorRuns. It doesn't change the slice that is passed,
// because the watch's cursor must stay as it is until the new one is recorded.
func appendRecent(runs, added []string) []string {
	for _, run := range added {
		if !slices.Contains(runs, run) {
			runs = append(slices.Clone(runs), run)
		}
	}
	return runs[max(0, len(runs)-maxCursorRuns):]
}

// rereadForBlocking makes the history due again while the watch waits for blocking runs, whose end the server doesn't report.
// The pause grows with the time since the run was seen; after queueLimit the watch gives up.
func (w *restWatch) rereadForBlocking(turns []*storedTurn) {
	for run, since := range w.blockingRuns {
		age := time.Since(since)
		isStored := slices.ContainsFunc(turns, func(x *storedTurn) bool { return x.isComplete && slices.Contains(x.runs, run) })
		if isStored || age > w.agent.times.queueLimit {
			delete(w.blockingRuns, run)
			continue
		}
		w.readBy(time.Now().Add(max(w.agent.times.poll, age/8)))
	}
}
