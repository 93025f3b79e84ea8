// Conversations and their messages.

package letta

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// conversation is a conversation of Letta.
type conversation struct {
	ID        string   `json:"id"`
	Agent     string   `json:"agent_id"`
	Summary   string   `json:"summary,omitempty"` // the title
	Created   string   `json:"created_at"`
	Updated   string   `json:"updated_at"`
	InContext []string `json:"in_context_message_ids"`
}

// conversationOf returns a conversation. The messages in the context of the model are known to the agent only, so the list of them is empty; clients
// load the messages by the other route.
//
// One without an agent has the default agent.
func (s *surface) conversationOf(p gateway.Principal, c *journal.Summary) conversation {
	return conversation{
		ID: conversationPrefix + c.ID, Agent: agentPrefix + cmp.Or(c.Agent, s.defaultAgent(p)), Summary: c.Title,
		Created: dateOf(c.Created), Updated: dateOf(c.Updated), InContext: []string{},
	}
}

// defaultAgent returns the name of the default agent, or "".
func (s *surface) defaultAgent(p gateway.Principal) string {
	for _, a := range s.gw.Catalog().Agents(p) {
		if a.Default {
			return a.Name
		}
	}
	return ""
}

// conversations answers GET /v1/conversations/ with the newest conversations, also only those of an agent.
//
// All of a user's conversations are read for each page, since a page begins after an id and not after a time. A user has hundreds of them.
func (s *surface) conversations(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	pg, err := pageOf(r, "desc")
	if err != nil {
		return err
	}
	agent := withoutPrefix(r.URL.Query().Get("agent_id"), agentPrefix)
	direct, err := s.directChats(r.Context(), p, agent)
	if err != nil {
		return err
	}
	result := []conversation{}
	var last *journal.Summary
	for {
		list, err := s.gw.List(r.Context(), p, last, maxPage)
		if err != nil {
			return err
		}
		for i := range list {
			if c := s.conversationOf(p, &list[i]); (agent == "" || c.Agent == agentPrefix+agent) && !direct[list[i].ID] {
				result = append(result, c)
			}
		}
		if len(list) < maxPage {
			break
		}
		last = &list[len(list)-1]
	}
	if pg.isAscending {
		slices.Reverse(result)
	}
	return server.Respond(w, elements(result, pg, func(c *conversation) string { return c.ID }), nil)
}

// directChats returns the ids of the default conversations of an agent, or of all agents. As in Letta, they are not in the list: Letta Code adds that of its agent.
func (s *surface) directChats(ctx context.Context, p gateway.Principal, agent string) (map[string]bool, error) {
	ids := map[string]bool{}
	for _, a := range s.gw.Catalog().Agents(p) {
		if agent != "" && a.Name != agent {
			continue
		}
		id, _, err := s.chats.Find(ctx, p, ownChat(a.Name))
		if err != nil {
			return nil, err
		}
		ids[id] = true
	}
	return ids, nil
}

// create answers POST /v1/conversations/.
func (s *surface) create(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Summary string `json:"summary"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	opt := gateway.CreateOptions{Title: body.Summary, Key: r.Header.Get("Idempotency-Key")}
	if id := r.URL.Query().Get("agent_id"); id != "" {
		a, err := s.find(p, id)
		if err != nil {
			return err
		}
		opt.Agent = a.Name
	}
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	c, _, err := s.gw.Create(ctx, p, opt)
	if err != nil {
		return err
	}
	return server.Respond(w, s.conversationOf(p, &c), nil)
}

// defaultConversation is the id of the conversation that an agent has for clients that name none. The request has the id of the agent then. Letta Code
// offers it in its list of conversations.
const defaultConversation = "default"

// directAgent returns the agent whose own conversation a path means, or nil. agent is its id in the body of the request, if that has one. A stop has the id of
// the agent in the place of the conversation's.
func (s *surface) directAgent(r *http.Request, p gateway.Principal, agent string) (*gateway.AgentInfo, error) {
	id := r.PathValue("conversation")
	if id == defaultConversation {
		return s.find(p, cmp.Or(agent, r.URL.Query().Get("agent_id")))
	}
	if strings.HasPrefix(id, agentPrefix) {
		return s.find(p, id)
	}
	return nil, nil
}

// lookUp returns the conversation that a path names.
func (s *surface) lookUp(r *http.Request, p gateway.Principal, action gateway.Action) (journal.Summary, error) {
	return s.lookUpDirect(r, p, action, "")
}

// lookUpDirect is lookUp for requests that may have the agent in their body.
func (s *surface) lookUpDirect(r *http.Request, p gateway.Principal, action gateway.Action, agent string) (journal.Summary, error) {
	id := withoutPrefix(r.PathValue("conversation"), conversationPrefix)
	a, err := s.directAgent(r, p, agent)
	if err != nil {
		return journal.Summary{}, err
	}
	if a != nil {
		var isFound bool
		if id, isFound, err = s.chats.Find(r.Context(), p, ownChat(a.Name)); err != nil {
			return journal.Summary{}, err
		}
		if !isFound {
			return journal.Summary{}, server.Errorf(http.StatusNotFound, server.ReasonNotFound, "this agent has no messages yet")
		}
	}
	return s.gw.Conversation(r.Context(), p, action, id)
}

// conversation answers GET /v1/conversations/{conversation}. It has the id of the open requests in the context, where Letta Code looks for them when it starts.
func (s *surface) conversation(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.lookUp(r, p, gateway.ActionRead)
	if err != nil {
		return err
	}
	result := s.conversationOf(p, &c)
	err = s.gw.ViewTranscript(r.Context(), p, c.ID, func(t *transcript.Transcript) bool {
		for _, turn := range t.Turns {
			if turn.Unfinished() && turn.Independent() && len(turn.Requests) > 0 {
				result.InContext = []string{requestsID(turn.ID)}
			}
		}
		return true
	})
	return server.Respond(w, result, err)
}

// update answers PATCH /v1/conversations/{conversation}, which changes the title.
func (s *surface) update(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Summary *string `json:"summary"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	c, err := s.lookUp(r, p, gateway.ActionRead)
	if err != nil {
		return err
	}
	if body.Summary != nil {
		if _, err := server.Do(r.Context(), s.gw, p, c.ID, gateway.Command{Type: gateway.CommandUpdate, Title: body.Summary}); err != nil {
			return err
		}
	}
	return s.conversation(w, r, p)
}

// remove answers DELETE /v1/conversations/{conversation}.
func (s *surface) remove(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.lookUp(r, p, gateway.ActionRead)
	if err != nil {
		return err
	}
	_, err = server.Do(r.Context(), s.gw, p, c.ID, gateway.Command{Type: gateway.CommandDelete})
	return server.Respond(w, struct{}{}, err)
}

// messages answers GET /v1/conversations/{conversation}/messages.
func (s *surface) messages(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.lookUp(r, p, gateway.ActionRead)
	if err != nil {
		return err
	}
	return s.list(w, r, p, c.ID, "")
}

// agentMessages answers GET /v1/agents/{agent}/messages: those of the conversation that an agent has for clients that name none.
func (s *surface) agentMessages(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	a, err := s.find(p, r.PathValue("agent"))
	if err != nil {
		return err
	}
	id, isFound, err := s.chats.Find(r.Context(), p, ownChat(a.Name))
	if err != nil {
		return err
	}
	if !isFound {
		return server.Respond(w, []message{}, nil)
	}
	return s.list(w, r, p, id, "")
}

// ownChat is the chat of an agent for clients that name no conversation.
func ownChat(agent string) string { return "letta:" + agent }

// list responds with a page of messages, of one turn only if turn isn't empty.
//
// The whole conversation is read, because what is shown of a message depends on its turn, which may be in another page.
func (s *surface) list(w http.ResponseWriter, r *http.Request, p gateway.Principal, id, turn string) error {
	pg, err := pageOf(r, "desc")
	if err != nil {
		return err
	}
	messages, err := s.allMessages(r.Context(), p, id, isAsker(r, nil))
	if err != nil {
		return err
	}
	types := r.URL.Query()["include_return_message_types"]
	messages = slices.DeleteFunc(messages, func(m message) bool {
		// Letta Code doesn't ask for the calls of tools, but shows them with their results, which it asks for.
		isWanted := len(types) == 0 || slices.Contains(types, m.Type) || m.Type == typeCall && slices.Contains(types, typeReturn)
		return !isWanted || turn != "" && m.Run != runPrefix+turn
	})
	if !pg.isAscending {
		slices.Reverse(messages)
	}
	return server.Respond(w, elements(messages, pg, func(m *message) string { return m.ID }), nil)
}

// allMessages returns the messages of a conversation, the oldest first.
func (s *surface) allMessages(ctx context.Context, p gateway.Principal, id string, isAsker bool) (list []message, err error) {
	err = s.gw.ViewTranscript(ctx, p, id, func(t *transcript.Transcript) bool {
		list = messagesOf(t, isAsker)
		return !t.Earlier
	})
	return list, err
}
