package letta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
)

var _ agent.Attacher = (*rest)(nil)

// conversationInfo is a conversation as both servers list it.
type conversationInfo struct {
	ID      string    `json:"id"`
	Agent   string    `json:"agent_id"`
	Summary string    `json:"summary"`
	Created time.Time `json:"created_at"`
	Spoken  time.Time `json:"last_message_at"`
}

// anyAgent reports whether the agent upstream differs from conversation to conversation.
func (b *base) anyAgent() bool { return strings.Contains(b.cfg.Agent, "{") }

// ListSessions implements [agent.Attacher]: the conversations of the agent, or of all agents if there is one for each of many. The
// agent's own conversation comes last, since the server does not say when it was used.
func (r *rest) ListSessions(ctx context.Context, limit int) ([]agent.SessionInfo, error) {
	query := url.Values{"order": {"desc"}, "order_by": {"last_message_at"}, "limit": {strconv.Itoa(limit)}}
	if !r.anyAgent() {
		query.Set("agent_id", r.cfg.Agent)
	}
	var list []conversationInfo
	if err := r.short(ctx, &list, http.MethodGet, query, nil, "conversations/"); err != nil {
		return nil, shown(err)
	}
	infos := make([]agent.SessionInfo, 0, len(list)+1)
	for _, c := range list {
		at := c.Spoken
		if at.IsZero() {
			at = c.Created
		}
		infos = append(infos, agent.SessionInfo{ID: c.ID, Title: c.Summary, Updated: at})
	}
	slices.SortStableFunc(infos, func(a, b agent.SessionInfo) int { return cmp.Compare(b.Updated.UnixNano(), a.Updated.UnixNano()) })
	if !r.anyAgent() {
		infos = append(infos, agent.SessionInfo{ID: own, Title: ownTitle})
	}
	return infos[:min(limit, len(infos))], nil
}

// maxAttached is how many of a conversation's newest messages are imported.
const maxAttached = 1000

// Attach implements [agent.Attacher]. A run that has not ended is left to Follow.
func (r *rest) Attach(ctx context.Context, id string, withHistory bool) (agent.Attachment, error) {
	c, err := r.conversation(ctx, id)
	if err != nil {
		return agent.Attachment{}, shown(err)
	}
	s := session{Agent: c.Agent, Conversation: id}
	query, path := s.history()
	query.Set("order", "desc")
	query.Set("limit", strconv.Itoa(maxAttached))
	rows, err := r.page(ctx, query, path...)
	if err != nil {
		return agent.Attachment{}, shown(err)
	}
	cut := distinct(rows) >= maxAttached
	rows = upward(rows)
	runs, err := r.runsOf(ctx, s)
	if err != nil {
		return agent.Attachment{}, shown(err)
	}
	result, at := agent.Attachment{Title: c.Summary}, placed{Session: s}
	all, of := chains(rows)
	for i, x := range all {
		newest := i == len(all)-1
		if len(x.runs) == 0 {
			result.Entries = append(result.Entries, x.messages()...)
			continue
		}
		info := runs[x.runs[len(x.runs)-1]]
		x.settled = info.over() || info.Conversation == "" && x.ended() || time.Since(x.last().Date) > r.times.held
		x.settled = x.settled && !(newest && len(x.open) > 0)
		if !x.settled || cut && i == 0 && len(x.users) == 0 { // the beginning of the run is older than what was read
			continue
		}
		e := x.entry()
		if e.Run.Ops, err = x.operations(info, nil); err != nil {
			return agent.Attachment{}, err
		}
		result.Entries = append(append(result.Entries, x.messages()...), e)
		at.Runs = late(at.Runs, x.runs)
	}
	for i, m := range rows {
		if of[i] != nil && !of[i].settled {
			break
		}
		at.Row = m.ID
	}
	if !withHistory {
		result.Entries = nil
	}
	if result.Session, err = json.Marshal(s); err != nil {
		return agent.Attachment{}, err
	}
	if result.Cursor, err = json.Marshal(at); err != nil {
		return agent.Attachment{}, err
	}
	return result, nil
}

// conversation returns the conversation of an id.
func (r *rest) conversation(ctx context.Context, id string) (c conversationInfo, err error) {
	if id == own {
		if r.anyAgent() {
			return c, fmt.Errorf("%w: %s", agent.ErrUnknownSession, id)
		}
		return conversationInfo{ID: own, Agent: r.cfg.Agent}, nil
	}
	err = r.short(ctx, &c, http.MethodGet, nil, nil, "conversations", id)
	var f *failure
	switch {
	case errors.As(err, &f) && (f.status == http.StatusNotFound || f.status == http.StatusUnprocessableEntity),
		err == nil && !r.anyAgent() && c.Agent != r.cfg.Agent:
		return c, fmt.Errorf("%w: %s", agent.ErrUnknownSession, id)
	}
	return c, err
}

// runsOf returns the newest runs of a session, by id.
func (r *rest) runsOf(ctx context.Context, s session) (map[string]runInfo, error) {
	query := url.Values{"agent_id": {s.Agent}, "order": {"desc"}, "limit": {strconv.Itoa(maxAttached)}}
	if s.Conversation != own {
		query.Set("conversation_id", s.Conversation)
	}
	var list []runInfo
	if err := r.short(ctx, &list, http.MethodGet, query, nil, "runs/"); err != nil {
		return nil, err
	}
	runs := make(map[string]runInfo, len(list))
	for _, i := range list {
		runs[i.ID] = i
	}
	return runs, nil
}

// upward returns messages in the order in which they were said; those of one step are in that order in either direction.
func upward(rows []*stored) []*stored {
	up := make([]*stored, 0, len(rows))
	for end := len(rows); end > 0; {
		begin := end - 1
		for begin > 0 && rows[begin-1].ID == rows[begin].ID {
			begin--
		}
		up = append(up, rows[begin:end]...)
		end = begin
	}
	return up
}
