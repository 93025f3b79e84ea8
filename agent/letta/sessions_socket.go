// Listing Letta's conversations and attaching to one of them, over the App Server.

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

var _ agent.Attacher = (*socketAgent)(nil)

// ListSessions implements [agent.Attacher]. It lists the conversations of the agent, or those of all agents if the setting
// contains placeholders, the newest first. The server's list doesn't contain the agent's default conversation, so that is
// added.
func (k *socketAgent) ListSessions(ctx context.Context, limit int) ([]agent.SessionInfo, error) {
	l, err := k.dial(ctx, nil)
	if err != nil {
		return nil, readerError(err)
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
		return nil, readerError(err)
	}
	infos := make([]agent.SessionInfo, 0, len(list.Conversations)+1)
	for _, c := range list.Conversations {
		infos = append(infos, c.sessionInfo())
	}
	if !k.anyAgent() {
		list, err := k.listMessages(ctx, l, session{Agent: k.cfg.Agent, Conversation: ownConversation}, 1, ignore)
		if err != nil {
			return nil, readerError(err)
		}
		newest, _, err := parseRows(list)
		if err != nil {
			return nil, err
		}
		info := agent.SessionInfo{ID: ownConversation, Title: ownTitle}
		if len(newest) > 0 {
			info.Updated = newest[0].Date
		}
		infos = append(infos, info)
	}
	// The server sorts its own list. The default conversation was added to it, and has its place by time.
	slices.SortStableFunc(infos, func(a, b agent.SessionInfo) int { return b.Updated.Compare(a.Updated) })
	return infos[:min(limit, len(infos))], nil
}

// ownTitle is the title of an agent's default conversation, which has no summary.
const ownTitle = "The agent's default conversation"

// request sends a request and decodes the fields of its response into v. Frames before the response are passed to other. If the
// server doesn't find the object, the error is a *failure with the status 404.
func (k *socketAgent) request(ctx context.Context, l *connection, request map[string]any, v any, other func([]byte) error) error {
	// The server repeats the id in its response. Frames of running turns may arrive before that.
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
		f := &failure{code: codeRefused, message: "the Letta server refused the request: " + res.Error}
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

// errNoAppServer is the error of a response that isn't the App Server's.
var errNoAppServer = &failure{code: codeStatus, message: "the Letta server sent an invalid response; is the target an App Server?"}

// ignore drops a frame.
func ignore([]byte) error { return nil }

// Attach implements [agent.Attacher]. It subscribes to the conversation only to learn what is running. The last run of the
// history is left out if it is in progress: Follow records it, starting at the returned cursor.
func (k *socketAgent) Attach(ctx context.Context, id string, history bool) (agent.Attachment, error) {
	l, err := k.dial(ctx, nil)
	if err != nil {
		return agent.Attachment{}, readerError(err)
	}
	defer l.close()
	c, err := k.conversation(ctx, l, id)
	if err != nil {
		return agent.Attachment{}, readerError(err)
	}
	s := session{Agent: c.Agent, Conversation: c.ID}
	// The watch is not run: it is used for its rules about what a history contains.
	w := newSocketWatch(k, nil, agent.Session{}, s)
	w.turns = newTurnTracker()
	observe := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) == nil && (f.Runtime == nil || *f.Runtime == *s.runtime()) {
			w.turns.observe(&f)
		}
		return nil
	}
	if _, err := k.start(ctx, l, s, "", observe); err != nil {
		return agent.Attachment{}, readerError(err)
	}
	if err := k.sync(ctx, l, s, observe); err != nil {
		return agent.Attachment{}, readerError(err)
	}
	list, err := k.listMessages(ctx, l, s, pageRows, observe)
	if err != nil {
		return agent.Attachment{}, readerError(err)
	}
	rows, _, err := parseRows(list)
	if err != nil {
		return agent.Attachment{}, err
	}
	result := agent.Attachment{Title: c.Summary}
	at := socketCursor{Session: s}
	runs := exchanges(rows, w.turns)
	if history {
		if w.turns.isBusy() && len(runs) > 0 {
			runs = runs[:len(runs)-1]
			w.turns.loopStatus = loopIdle // the status when the rows before that run were complete
		}
		result.Entries, at, _ = w.gather(runs, at)
	} else {
		at = k.startCursor("", at, rows)
	}
	return attachmentAt(result, s, at)
}

// conversation returns a conversation by its id. It returns agent.ErrUnknownSession for an id that the server doesn't know and
// for a conversation of another agent.
func (k *socketAgent) conversation(ctx context.Context, l *connection, id string) (conversationInfo, error) {
	unknown := fmt.Errorf("%w: %s", agent.ErrUnknownSession, id)
	if id == ownConversation && !k.anyAgent() {
		return conversationInfo{ID: ownConversation, Agent: k.cfg.Agent}, nil
	}
	// With placeholders in the setting there is no agent whose default conversation is meant.
	if id == ownConversation || id == "" {
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
		return c, unknown
	default:
		return c, nil
	}
}
