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

// restWatch is a conversation whose session is followed. It is the poller's own.
type restWatch struct {
	agent        *restAgent
	poller       *poller
	conversation string
	session      session
	cursor       restCursor
	hasNoCursor  bool                 // no cursor is stored yet
	due          time.Time            // when the history is to be read; the zero time means not at all
	isUrgent     bool                 // a run has begun or ended
	retryDelay   time.Duration        // after a failure
	newRuns      map[string]bool      // runs that were seen to begin, and are not taken yet
	blockingRuns map[string]time.Time // runs of which nothing tells the end, and since when it is waited for
}

func newRESTWatch(p *poller, s agent.Session, key session) *restWatch {
	w := &restWatch{agent: p.agent, poller: p, conversation: s.Conversation, session: key, due: time.Now(), newRuns: map[string]bool{}, blockingRuns: map[string]time.Time{}}
	at, ok := parseRESTCursor(s.Cursor, key)
	w.cursor, w.hasNoCursor = at, !ok
	return w
}

// readNow has the history read before those that nothing is known to have happened in.
func (w *restWatch) readNow() { w.due, w.isUrgent = time.Now(), true }

// readBy has the history read at a time, or earlier.
func (w *restWatch) readBy(at time.Time) {
	if w.due.IsZero() || at.Before(w.due) {
		w.due = at
	}
}

// hasRun reports whether a run is one of the conversation's.
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

// readHistory reads the history and records what happened in the session since. runs are the newest ones of the agent.
func (w *restWatch) readHistory(ctx context.Context, runs map[string]runInfo) error {
	r := w.agent
	at := w.cursor
	if w.hasNoCursor && r.cfg.Conversation != "" { // else the session was made for the conversation
		start, err := w.startRow(ctx)
		if err != nil {
			return err
		}
		at.Row = start
	}
	query, path := w.session.history()
	rows, err := r.storedMessages(ctx, query, at.Row, path...)
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound && at.Row != "" {
		// The messages were deleted, as by a reset. What the conversation has already is not added again.
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
		return fmt.Errorf("record what happened: %w", err)
	}
	w.cursor, w.hasNoCursor = at, false
	return nil
}

// startRow returns the message after which a session begins to be followed: the last one before the conversation's turns that run. What is
// older was there before the conversation.
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
	oldestOwn := -1 // of the conversation's own messages
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

func appendRecent(runs, added []string) []string {
	for _, run := range added {
		if !slices.Contains(runs, run) {
			runs = append(slices.Clone(runs), run)
		}
	}
	return runs[max(0, len(runs)-maxCursorRuns):]
}

// rereadForBlocking sees to runs of which nothing tells the end: the history is read again, less and less often, until it has one of them.
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
