package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
)

var _ agent.Attacher = (*socket)(nil)

// errManyAgents is the error of a configuration in which each conversation may have another agent.
var errManyAgents = errors.New("the option agent is a template; sessions can be listed and attached if it is the id of one agent")

// conversationInfo is a conversation as the App Server lists it.
type conversationInfo struct {
	ID      string    `json:"id"`
	Summary string    `json:"summary"`
	Updated time.Time `json:"updated_at"`
	Last    time.Time `json:"last_message_at"`
}

// ListSessions implements [agent.Attacher]. The server's list leaves out the agent's own conversation, which every agent has.
func (k *socket) ListSessions(ctx context.Context, limit int) ([]agent.SessionInfo, error) {
	s, err := k.ownSession()
	if err != nil {
		return nil, err
	}
	l, err := k.dial(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer l.close()
	id := newID()
	b, err := l.call(ctx, k.times, id, map[string]any{
		"type": "conversation_list", "request_id": id, "query": map[string]any{"agent_id": s.Agent, "limit": limit},
	}, ignore)
	if err != nil {
		return nil, err
	}
	var res struct {
		Success bool               `json:"success"`
		Error   string             `json:"error"`
		All     []conversationInfo `json:"conversations"`
	}
	switch err := json.Unmarshal(b, &res); {
	case err != nil:
		return nil, &failure{code: codeStatus, message: "the Letta server's answer is not what its protocol says; is it an App Server?"}
	case !res.Success:
		return nil, &failure{code: codeRefused, message: "the Letta server refuses: " + res.Error}
	}
	list, err := k.listMessages(ctx, l, s, 1, ignore)
	if err != nil {
		return nil, err
	}
	newest, _, err := parseRows(list)
	if err != nil {
		return nil, err
	}
	infos := []agent.SessionInfo{{ID: own}}
	if len(newest) > 0 {
		infos[0].Updated = newest[0].Date
	}
	for _, c := range res.All {
		at := c.Last
		if at.IsZero() {
			at = c.Updated
		}
		infos = append(infos, agent.SessionInfo{ID: c.ID, Title: c.Summary, Updated: at})
	}
	slices.SortStableFunc(infos, func(a, b agent.SessionInfo) int { return b.Updated.Compare(a.Updated) })
	return infos[:min(limit, len(infos))], nil
}

// ownSession returns the own conversation of the one agent that is configured.
func (b *base) ownSession() (session, error) {
	if strings.Contains(b.cfg.Agent, "{") {
		return session{}, errManyAgents
	}
	return session{Agent: b.cfg.Agent, Conversation: own}, nil
}

// ignore takes frames that don't matter.
func ignore([]byte) error { return nil }

// Attach implements [agent.Attacher]. A run that has not ended is left to Follow.
func (k *socket) Attach(ctx context.Context, id string, history bool) (agent.Attachment, error) {
	s, err := k.ownSession()
	if err != nil {
		return agent.Attachment{}, err
	}
	s.Conversation = id
	l, err := k.dial(ctx, nil)
	if err != nil {
		return agent.Attachment{}, err
	}
	defer l.close()
	w := newWatch(k, nil, agent.Session{}, s)
	w.turns = newTurns()
	take := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) == nil && (f.Runtime == nil || *f.Runtime == *s.runtime()) {
			w.turns.take(&f)
		}
		return nil
	}
	title, err := k.open(ctx, l, s, take)
	if err != nil {
		return agent.Attachment{}, err
	}
	if err := k.sync(ctx, l, s, take); err != nil {
		return agent.Attachment{}, err
	}
	list, err := k.listMessages(ctx, l, s, pageRows, take)
	if err != nil {
		return agent.Attachment{}, err
	}
	rows, _, err := parseRows(list)
	if err != nil {
		return agent.Attachment{}, err
	}
	result := agent.Attachment{Title: title}
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

// open subscribes to an existing conversation and returns its title.
func (k *socket) open(ctx context.Context, l *link, s session, other func([]byte) error) (title string, err error) {
	if s.Conversation == "" { // it would make one
		return "", fmt.Errorf("%w: it has no id", agent.ErrUnknownSession)
	}
	var f *failure
	if _, err = k.start(ctx, l, s, "", other); errors.As(err, &f) && f.status == http.StatusNotFound {
		return "", fmt.Errorf("%w: %s", agent.ErrUnknownSession, s.Conversation)
	}
	if err != nil || s.Conversation == own {
		return "", err
	}
	id := newID()
	b, err := l.call(ctx, k.times, id, map[string]any{"type": "conversation_retrieve", "request_id": id, "conversation_id": s.Conversation}, other)
	if err != nil {
		return "", err
	}
	var res struct {
		Conversation conversationInfo `json:"conversation"`
	}
	if err := json.Unmarshal(b, &res); err != nil {
		return "", &failure{code: codeStatus, message: "the Letta server's answer is not what its protocol says; is it an App Server?"}
	}
	return res.Conversation.Summary, nil
}
