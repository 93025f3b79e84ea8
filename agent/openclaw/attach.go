// Listing OpenClaw's sessions, and attaching a conversation to one of them with or without its history.

package openclaw

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
)

var _ agent.Attacher = (*gatewayAgent)(nil)

// errProtocol is the error of calls that need protocol 4.
var errProtocol = errors.New("attaching a session requires OpenClaw protocol 4; this gateway speaks protocol 3")

// listedSession is a session in the gateway's list.
type listedSession struct {
	Key     string `json:"key"`
	Label   string `json:"label"`
	Name    string `json:"displayName"`
	Title   string `json:"derivedTitle"`
	Updated int64  `json:"updatedAt"`
}

// title returns the session's name for lists: the user's label, or else the gateway's name.
func (s *listedSession) title() string { return cmp.Or(s.Label, s.Name, s.Title) }

// recentSessions returns up to limit sessions of the gateway, newest first, and the connection that it used. The connection is the
// agent's shared one: callers must not close it. Gateways before protocol 4 are an error, because their sessions can't be followed.
func (a *gatewayAgent) recentSessions(ctx context.Context, limit int) (*connection, []listedSession, error) {
	a.ensureStarted()
	conn, err := a.awaitConnection(ctx, requestLimit, nil)
	if err != nil {
		return nil, nil, err
	}
	if conn.protocol() < numberedProtocol {
		return nil, nil, errProtocol
	}
	var answer struct {
		Sessions []listedSession `json:"sessions"`
	}
	if err := conn.call(ctx, "sessions.list", map[string]any{"limit": limit}, &answer); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(answer.Sessions, func(a, b listedSession) int { return cmp.Compare(b.Updated, a.Updated) })
	return conn, answer.Sessions, nil
}

// ListSessions implements [agent.Attacher].
func (a *gatewayAgent) ListSessions(ctx context.Context, limit int) ([]agent.SessionInfo, error) {
	_, sessions, err := a.recentSessions(ctx, limit)
	if err != nil {
		return nil, err
	}
	infos := make([]agent.SessionInfo, 0, len(sessions))
	for i := range sessions[:min(limit, len(sessions))] {
		s := &sessions[i]
		infos = append(infos, agent.SessionInfo{ID: s.Key, Title: s.title(), Updated: time.UnixMilli(s.Updated)})
	}
	return infos, nil
}

// maxAttachable is how many of the newest sessions can be attached. Attach looks the session up in this list and
// returns [agent.ErrUnknownSession] for any other key.
const maxAttachable = 1000

// Attach implements [agent.Attacher]. With history, it imports the entries up to the first run in progress. That run and
// everything after it is left to Follow, which starts at the returned cursor.
//
// It reads one page of pageRows rows, so older rows of a very long session are not imported. The watch that it makes is temporary:
// it is not registered, and only provides the gatherer with an empty cursor. An entry without Ops is a run in progress; if there
// is one, the cursor forgets the previous run and the spawned sessions too, since Follow reads their rows again.
func (a *gatewayAgent) Attach(ctx context.Context, session string, withHistory bool) (agent.Attachment, error) {
	conn, sessions, err := a.recentSessions(ctx, maxAttachable)
	if err != nil {
		return agent.Attachment{}, err
	}
	i := slices.IndexFunc(sessions, func(s listedSession) bool { return s.Key == session })
	if i < 0 {
		return agent.Attachment{}, fmt.Errorf("%w: %s", agent.ErrUnknownSession, session)
	}
	history, err := readHistory(ctx, conn, session, pageRows)
	if err != nil {
		return agent.Attachment{}, err
	}
	at := cursor{Session: session, Seq: history.newestSeq()}
	result := agent.Attachment{Title: sessions[i].title()}
	if withHistory {
		w := &watch{a: a, session: session, unexplainedSince: map[string]time.Time{}}
		g := &gatherer{w: w, h: history, session: session}
		g.addRows(0, "")
		at.Last, at.Children = g.lastRun, g.children
		if n := slices.IndexFunc(g.entries, func(e agent.Entry) bool { return e.Run != nil && e.Run.Ops == nil }); n >= 0 {
			at.Seq, at.Last, at.Children = history.seqBefore(g.entries[n].Run), "", nil
			g.entries = g.entries[:n]
		}
		result.Entries = g.entries
	}
	if result.Session, err = json.Marshal(storedSession{session}); err != nil {
		return agent.Attachment{}, err
	}
	if result.Cursor, err = json.Marshal(at); err != nil {
		return agent.Attachment{}, err
	}
	return result, nil
}

// seqBefore returns the seq of the row before the first row of a run in progress, or that of the newest row if the run has no
// rows.
func (h *sessionHistory) seqBefore(r *agent.Run) int64 {
	var st turnState
	if json.Unmarshal(r.State, &st) == nil && len(st.Runs) > 0 {
		for i := range h.Messages {
			if h.Messages[i].Meta.Run == st.Runs[0].ID {
				return h.Messages[i].Meta.Seq - 1
			}
		}
	}
	return h.newestSeq()
}
