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

// watched is a conversation whose session is followed. It is the poller's own.
type watched struct {
	p            *poller
	conversation string
	session      session
	at           placed
	fresh        bool                 // no cursor is stored yet
	due          time.Time            // when the history is to be read; the zero time means not at all
	urgent       bool                 // a run has begun or ended
	wait         time.Duration        // after a failure
	begun        map[string]bool      // runs that were seen to begin, and are not taken yet
	awaits       map[string]time.Time // runs of which nothing tells the end, and since when it is waited for
}

func newWatched(p *poller, s agent.Session, key session) *watched {
	w := &watched{p: p, conversation: s.Conversation, session: key, due: time.Now(), begun: map[string]bool{}, awaits: map[string]time.Time{}}
	at, ok := parsePlaced(s.Cursor, key)
	w.at, w.fresh = at, !ok
	return w
}

// hurry has the history read before those that nothing is known to have happened in.
func (w *watched) hurry() { w.due, w.urgent = time.Now(), true }

// again has the history read at a time, or earlier.
func (w *watched) again(at time.Time) {
	if w.due.IsZero() || at.Before(w.due) {
		w.due = at
	}
}

// shows reports whether a run is one of the conversation's.
func (w *watched) shows(i runInfo) bool {
	if w.session.Conversation == own {
		return i.Conversation == "" && i.Metadata.Type != blocking && i.Agent == w.session.Agent
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

// catchUp reads the history and records what happened in the session since. runs are the newest ones of the agent.
func (w *watched) catchUp(ctx context.Context, runs map[string]runInfo) error {
	r := w.p.r
	at := w.at
	if w.fresh && r.cfg.Conversation != "" { // else the session was made for the conversation
		start, err := w.start(ctx)
		if err != nil {
			return err
		}
		at.Row = start
	}
	query, path := w.session.history()
	rows, err := r.rows(ctx, query, at.Row, path...)
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound && at.Row != "" {
		// The messages were deleted, as by a reset. What the conversation has already is not added again.
		query, path = w.session.history()
		rows, err = r.rows(ctx, query, "", path...)
	}
	if err != nil {
		return err
	}
	g := &collector{w: w, runs: runs, known: slices.Clone(at.Runs)}
	all, of := chains(rows)
	for i, x := range all {
		if err := g.chain(ctx, x, len(all)-1-i); err != nil {
			return err
		}
	}
	g.unwritten(all)
	for i, m := range rows {
		if of[i] != nil && !of[i].settled {
			break
		}
		at.Row = m.ID
	}
	for _, x := range all {
		if x.settled {
			at.Runs = late(at.Runs, x.runs)
		}
	}
	w.await(all)
	if len(g.entries) == 0 && !w.fresh && at.Row == w.at.Row && slices.Equal(at.Runs, w.at.Runs) {
		return nil
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := w.p.sessions.Add(ctx, w.conversation, g.entries, raw); err != nil {
		return fmt.Errorf("record what happened: %w", err)
	}
	w.at, w.fresh = at, false
	return nil
}

// start returns the message after which a session begins to be followed: the last one before the conversation's turns that run. What is
// older was there before the conversation.
func (w *watched) start(ctx context.Context) (row string, err error) {
	query, path := w.session.history()
	query.Set("order", "desc")
	query.Set("limit", strconv.Itoa(pageStored))
	page, err := w.p.r.page(ctx, query, path...)
	if err != nil {
		return "", err
	}
	mine := map[string]bool{}
	for _, t := range w.p.r.running(w.conversation) {
		mine[clientID(t.in, t.in.Message.ID)] = true
	}
	first := -1 // of the conversation's own messages
	for i, m := range page {
		if mine[m.Otid] {
			first = i
		}
	}
	for _, m := range page[first+1:] {
		if first < 0 || m.ID != page[first].ID {
			return m.ID, nil
		}
	}
	return "", nil
}

func late(all, more []string) []string {
	for _, run := range more {
		if !slices.Contains(all, run) {
			all = append(slices.Clone(all), run)
		}
	}
	return all[max(0, len(all)-lateRuns):]
}

// await sees to runs of which nothing tells the end: the history is read again, less and less often, until it has one of them.
func (w *watched) await(all []*chain) {
	for run, since := range w.awaits {
		age := time.Since(since)
		done := slices.ContainsFunc(all, func(x *chain) bool { return x.settled && slices.Contains(x.runs, run) })
		if done || age > w.p.r.times.held {
			delete(w.awaits, run)
			continue
		}
		w.again(time.Now().Add(max(w.p.r.times.poll, age/8)))
	}
}
