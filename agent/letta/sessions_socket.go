package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
)

var _ agent.Attacher = (*socket)(nil)

// ListSessions implements [agent.Attacher]: the conversations of the agent, or of all agents if there is one for each of many. The server's
// list leaves out the agent's own conversation.
func (k *socket) ListSessions(ctx context.Context, limit int) ([]agent.SessionInfo, error) {
	l, err := k.dial(ctx, nil)
	if err != nil {
		return nil, shown(err)
	}
	defer l.close()
	query := map[string]any{"limit": limit}
	if !k.anyAgent() {
		query["agent_id"] = k.cfg.Agent
	}
	var list struct {
		Conversations []conversationInfo `json:"conversations"`
	}
	if err := k.request(ctx, l, map[string]any{"type": "conversation_list", "query": query}, &list, ignore); err != nil {
		return nil, shown(err)
	}
	infos := make([]agent.SessionInfo, 0, len(list.Conversations)+1)
	for _, c := range list.Conversations {
		at := c.Spoken
		if at.IsZero() {
			at = c.Created
		}
		infos = append(infos, agent.SessionInfo{ID: c.ID, Title: c.Summary, Updated: at})
	}
	if !k.anyAgent() {
		list, err := k.listMessages(ctx, l, session{Agent: k.cfg.Agent, Conversation: own}, 1, ignore)
		if err != nil {
			return nil, shown(err)
		}
		newest, _, err := parseRows(list)
		if err != nil {
			return nil, err
		}
		info := agent.SessionInfo{ID: own, Title: ownTitle}
		if len(newest) > 0 {
			info.Updated = newest[0].Date
		}
		infos = append(infos, info)
	}
	slices.SortStableFunc(infos, func(a, b agent.SessionInfo) int { return b.Updated.Compare(a.Updated) })
	return infos[:min(limit, len(infos))], nil
}

const ownTitle = "The agent's own conversation"

// request sends a request and reads the fields of its answer into v. What comes before the answer is handed to other.
func (k *socket) request(ctx context.Context, l *link, request map[string]any, v any, other func([]byte) error) error {
	id := newID()
	request["request_id"] = id
	b, err := l.call(ctx, k.times, id, request, other)
	if err != nil {
		return err
	}
	var res struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(b, &res); err != nil {
		return errNoAppServer
	}
	if !res.Success {
		f := &failure{code: codeRefused, message: "the Letta server refuses: " + res.Error}
		if strings.HasSuffix(res.Error, " not found") {
			f.status = http.StatusNotFound
		}
		return f
	}
	if err := json.Unmarshal(b, v); err != nil {
		return errNoAppServer
	}
	return nil
}

// errNoAppServer is the error for an answer that no App Server gives.
var errNoAppServer = &failure{code: codeStatus, message: "the Letta server's answer is not what its protocol says; is it an App Server?"}

// ignore takes frames that don't matter.
func ignore([]byte) error { return nil }

// Attach implements [agent.Attacher]. A run that has not ended is left to Follow.
func (k *socket) Attach(ctx context.Context, id string, history bool) (agent.Attachment, error) {
	l, err := k.dial(ctx, nil)
	if err != nil {
		return agent.Attachment{}, shown(err)
	}
	defer l.close()
	c, err := k.conversation(ctx, l, id)
	if err != nil {
		return agent.Attachment{}, shown(err)
	}
	s := session{Agent: c.Agent, Conversation: c.ID}
	w := newWatch(k, nil, agent.Session{}, s)
	w.turns = newTurns()
	take := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) == nil && (f.Runtime == nil || *f.Runtime == *s.runtime()) {
			w.turns.take(&f)
		}
		return nil
	}
	if _, err := k.start(ctx, l, s, "", take); err != nil {
		return agent.Attachment{}, shown(err)
	}
	if err := k.sync(ctx, l, s, take); err != nil {
		return agent.Attachment{}, shown(err)
	}
	list, err := k.listMessages(ctx, l, s, pageRows, take)
	if err != nil {
		return agent.Attachment{}, shown(err)
	}
	rows, _, err := parseRows(list)
	if err != nil {
		return agent.Attachment{}, err
	}
	result := agent.Attachment{Title: c.Summary}
	at := cursor{Session: s}
	all := exchanges(rows, w.turns)
	if history {
		if w.turns.busy() && len(all) > 0 {
			all = all[:len(all)-1]
			w.turns.status = loopIdle // as it was before that run
		}
		result.Entries, at, _ = w.gather(all, at)
	} else {
		at = k.startOf("", at, rows)
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
func (k *socket) conversation(ctx context.Context, l *link, id string) (conversationInfo, error) {
	unknown := fmt.Errorf("%w: %s", agent.ErrUnknownSession, id)
	if id == own && !k.anyAgent() {
		return conversationInfo{ID: own, Agent: k.cfg.Agent}, nil
	}
	if id == own || id == "" {
		return conversationInfo{}, unknown
	}
	var res struct {
		Conversation conversationInfo `json:"conversation"`
	}
	err := k.request(ctx, l, map[string]any{"type": "conversation_retrieve", "conversation_id": id}, &res, ignore)
	var f *failure
	switch c := res.Conversation; {
	case errors.As(err, &f) && f.status == http.StatusNotFound:
		return c, unknown
	case err != nil:
		return c, err
	case c.Agent == "" || !k.anyAgent() && c.Agent != k.cfg.Agent:
		return c, unknown // another agent's
	default:
		return c, nil
	}
}
