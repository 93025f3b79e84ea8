// Listing Letta's conversations and attaching to one of them, over the REST API.

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

var _ agent.Attacher = (*restAgent)(nil)

// conversationInfo is a conversation in the lists of both servers.
type conversationInfo struct {
	ID          string    `json:"id"`
	Agent       string    `json:"agent_id"`
	Summary     string    `json:"summary"`
	Created     time.Time `json:"created_at"`
	LastMessage time.Time `json:"last_message_at"`
}

// sessionInfo returns the conversation as a session. One without messages is listed by the time of its creation.
func (c *conversationInfo) sessionInfo() agent.SessionInfo {
	at := c.LastMessage
	if at.IsZero() {
		at = c.Created
	}
	return agent.SessionInfo{ID: c.ID, Title: c.Summary, Updated: at}
}

// anyAgent reports whether conversations use different agents upstream.
func (b *base) anyAgent() bool { return strings.Contains(b.cfg.Agent, "{") }

// ListSessions implements [agent.Attacher]. It lists the conversations of the agent, or those of all agents if the setting
// contains placeholders, the newest first. The agent's default conversation is last, since the server doesn't say when it was
// used.
func (r *restAgent) ListSessions(ctx context.Context, limit int) ([]agent.SessionInfo, error) {
	query := url.Values{"order": {"desc"}, "order_by": {"last_message_at"}, "limit": {strconv.Itoa(limit)}}
	if !r.anyAgent() {
		query.Set("agent_id", r.cfg.Agent)
	}
	var list []conversationInfo
	if err := r.callJSON(ctx, &list, http.MethodGet, query, nil, "conversations/"); err != nil {
		return nil, readerError(err)
	}
	infos := make([]agent.SessionInfo, 0, len(list)+1)
	for _, c := range list {
		infos = append(infos, c.sessionInfo())
	}
	slices.SortStableFunc(infos, func(a, b agent.SessionInfo) int { return cmp.Compare(b.Updated.UnixNano(), a.Updated.UnixNano()) })
	if !r.anyAgent() {
		infos = append(infos, agent.SessionInfo{ID: ownConversation, Title: ownTitle})
	}
	return infos[:min(limit, len(infos))], nil
}

// maxAttached limits the messages of a conversation that Attach imports, and the runs that it lists for them.
const maxAttached = 1000

// Attach implements [agent.Attacher]. It imports the newest messages, and returns the cursor at which Follow continues. A turn
// that hasn't ended is left to Follow. If the history is longer than maxAttached, the first turn may be incomplete, and is left
// out then.
//
// The cursor's row stops before the first turn that isn't complete, even if complete turns follow it. Follow reads those again,
// and the runs in the cursor keep it from recording them twice. The server lists messages newest first here, because the
// newest ones are wanted; chronological reverses them.
func (r *restAgent) Attach(ctx context.Context, id string, withHistory bool) (agent.Attachment, error) {
	c, err := r.conversation(ctx, id)
	if err != nil {
		return agent.Attachment{}, readerError(err)
	}
	s := session{Agent: c.Agent, Conversation: id}
	query, path := s.history()
	query.Set("order", "desc")
	query.Set("limit", strconv.Itoa(maxAttached))
	rows, err := r.storedPage(ctx, query, path...)
	if err != nil {
		return agent.Attachment{}, readerError(err)
	}
	isTruncated := distinct(rows) >= maxAttached
	rows = chronological(rows)
	runs, err := r.runsOf(ctx, s)
	if err != nil {
		return agent.Attachment{}, readerError(err)
	}
	result, at := agent.Attachment{Title: c.Summary}, restCursor{Session: s}
	turns, turnOf := storedTurns(rows)
	for i, x := range turns {
		newest := i == len(turns)-1
		if len(x.runs) == 0 {
			result.Entries = append(result.Entries, x.messages()...)
			continue
		}
		// A run without a conversation is a blocking one, whose status is never updated: its messages show whether it has ended. A run
		// that has been silent for queueLimit has probably died with its server process.
		info := runs[x.runs[len(x.runs)-1]]
		x.isComplete = info.isOver() || info.Conversation == "" && x.endsRun() || time.Since(x.newest().Date) > r.times.queueLimit
		x.isComplete = x.isComplete && !(newest && len(x.openCalls) > 0)
		if !x.isComplete || isTruncated && i == 0 && len(x.users) == 0 {
			continue
		}
		e := x.entry()
		if e.Run.Ops, err = x.operations(info, nil); err != nil {
			return agent.Attachment{}, err
		}
		result.Entries = append(append(result.Entries, x.messages()...), e)
		at.Runs = appendRecent(at.Runs, x.runs)
	}
	for i, m := range rows {
		if turnOf[i] != nil && !turnOf[i].isComplete {
			break
		}
		at.Row = m.ID
	}
	if !withHistory {
		result.Entries = nil
	}
	return attachmentAt(result, s, at)
}

// attachmentAt returns an attachment with its session and the cursor at which Follow continues.
func attachmentAt(a agent.Attachment, s session, cursor any) (agent.Attachment, error) {
	var err error
	if a.Session, err = json.Marshal(s); err != nil {
		return agent.Attachment{}, err
	}
	if a.Cursor, err = json.Marshal(cursor); err != nil {
		return agent.Attachment{}, err
	}
	return a, nil
}

// conversation returns a conversation by its id. The description of an agent's default conversation is made here, without a
// request to the server. It returns agent.ErrUnknownSession for an id that the server doesn't know and
// for a conversation of another agent. The server answers 422 to a malformed id.
func (r *restAgent) conversation(ctx context.Context, id string) (c conversationInfo, err error) {
	if id == ownConversation {
		if r.anyAgent() {
			return c, fmt.Errorf("%w: %s", agent.ErrUnknownSession, id)
		}
		return conversationInfo{ID: ownConversation, Agent: r.cfg.Agent}, nil
	}
	err = r.callJSON(ctx, &c, http.MethodGet, nil, nil, "conversations", id)
	var f *failure
	switch {
	case errors.As(err, &f) && (f.status == http.StatusNotFound || f.status == http.StatusUnprocessableEntity),
		err == nil && !r.anyAgent() && c.Agent != r.cfg.Agent:
		return c, fmt.Errorf("%w: %s", agent.ErrUnknownSession, id)
	}
	return c, err
}

// runsOf returns the newest runs of a session, by id.
func (r *restAgent) runsOf(ctx context.Context, s session) (map[string]runInfo, error) {
	query := url.Values{"agent_id": {s.Agent}, "order": {"desc"}, "limit": {strconv.Itoa(maxAttached)}}
	if s.Conversation != ownConversation {
		query.Set("conversation_id", s.Conversation)
	}
	var list []runInfo
	if err := r.callJSON(ctx, &list, http.MethodGet, query, nil, "runs/"); err != nil {
		return nil, err
	}
	runs := make(map[string]runInfo, len(list))
	for _, i := range list {
		runs[i.ID] = i
	}
	return runs, nil
}

// chronological reverses a page that lists the newest messages first. Messages of one step stay in order, since the server
// lists those in the order of time either way.
func chronological(rows []*storedMessage) []*storedMessage {
	ordered := make([]*storedMessage, 0, len(rows))
	for end := len(rows); end > 0; {
		begin := end - 1
		for begin > 0 && rows[begin-1].ID == rows[begin].ID {
			begin--
		}
		ordered = append(ordered, rows[begin:end]...)
		end = begin
	}
	return ordered
}
