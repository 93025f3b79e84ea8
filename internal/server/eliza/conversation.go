// The conversations of Eliza's API: their JSON, and creating, listing and renaming them.

package eliza

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

// maxConversations is how many conversations a list contains, the newest ones, as in Eliza.
const maxConversations = 500

// newChat is the title that clients show for a conversation without one.
const newChat = "New Chat"

// conversation is a conversation as Eliza's clients read it, with the name of its agent.
type conversation struct {
	ID        string                     `json:"id"`
	Title     string                     `json:"title"`
	RoomID    string                     `json:"roomId"`
	CreatedAt string                     `json:"createdAt"`
	UpdatedAt string                     `json:"updatedAt"`
	Metadata  map[string]json.RawMessage `json:"metadata,omitempty"`
	Agent     string                     `json:"agent,omitempty"`
	// Owner and Access are set in conversations of other users, Grants in the user's own ones that are shared.
	Owner  string          `json:"owner,omitempty"`
	Access string          `json:"access,omitempty"`
	Grants []journal.Grant `json:"grants,omitempty"`
	// Unread reports that an agent has written after Read, the seq up to which the user has read the conversation.
	Unread bool  `json:"unread,omitempty"`
	Read   int64 `json:"read,omitempty"`
	// IsWaiting reports that a turn waits for a person.
	IsWaiting bool `json:"waiting,omitempty"`
}

// conversation returns the conversation as p may see it.
//
// The read position needs another read from the store, so it is skipped for a conversation in which no
// agent has written yet: it can't have anything unread.
func (s *surface) conversation(ctx context.Context, p gateway.Principal, summary journal.Summary) (conversation, error) {
	c := conversationOf(p, summary)
	if summary.SpokenSeq == 0 {
		return c, nil
	}
	at, err := s.gw.Position(ctx, p, &summary)
	c.Unread, c.Read = at.Unread, at.Read
	return c, err
}

// conversationOf converts a summary. It includes only what p may see: the grants are for users who may
// share the conversation, and the owner is named only to users who got the conversation shared. Access
// tells those whether to show a message field.
func conversationOf(p gateway.Principal, s journal.Summary) conversation {
	c := conversation{
		ID: s.ID, Title: s.Title, RoomID: s.ID, CreatedAt: iso(s.Created), UpdatedAt: iso(s.Updated), Metadata: s.Metadata, Agent: s.Agent,
		IsWaiting: len(s.WaitingTurns) > 0,
	}
	c.Title = cmp.Or(c.Title, newChat)
	if gateway.Decide(p, gateway.ActionShare, &s) == nil {
		c.Grants = s.Grants
	}
	if !p.Admin && p.Subject != s.Owner {
		c.Owner, c.Access = s.Owner, gateway.AccessRead
		if gateway.Decide(p, gateway.ActionWrite, &s) == nil {
			c.Access = gateway.AccessWrite
		}
	}
	return c
}

// iso formats epoch milliseconds as JavaScript's toISOString does.
func iso(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// conversationResponse is the response of every route that returns one conversation. Eliza's clients
// expect it inside an object.
type conversationResponse struct {
	Conversation conversation `json:"conversation"`
}

// list answers GET /api/conversations with the newest conversations that the caller may read. There are no
// pages: Eliza's clients don't request any.
func (s *surface) list(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	summaries, err := s.gw.List(r.Context(), p, nil, maxConversations)
	if err != nil {
		return err
	}
	conversations := make([]conversation, len(summaries))
	for i, c := range summaries {
		if conversations[i], err = s.conversation(r.Context(), p, c); err != nil {
			return err
		}
	}
	return server.Respond(w, map[string]any{"conversations": conversations}, nil)
}

// create answers POST /api/conversations. The keys with which Eliza's clients ask for a greeting are ignored.
//
// With an Idempotency-Key, a repeated request returns the conversation of the first one, so a client may
// retry after a timeout.
func (s *surface) create(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		ID       string                     `json:"id"`
		Title    string                     `json:"title"`
		Agent    string                     `json:"agent"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	summary, _, err := s.gw.Create(r.Context(), p, gateway.CreateOptions{
		ID: body.ID, Title: titleOf(body.Title), Agent: body.Agent, Metadata: body.Metadata, Key: r.Header.Get("Idempotency-Key"),
	})
	if err != nil {
		return err
	}
	return s.write(w, r, p, summary)
}

// write responds with one conversation as the caller may see it.
func (s *surface) write(w http.ResponseWriter, r *http.Request, p gateway.Principal, summary journal.Summary) error {
	c, err := s.conversation(r.Context(), p, summary)
	return server.Respond(w, conversationResponse{c}, err)
}

// get answers GET /api/conversations/{id}.
func (s *surface) get(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return s.show(w, r, p, r.PathValue("id"))
}

// show reads a conversation and responds with it. Routes that change a conversation call it after the
// change, so that the response has the stored state, including changes by others.
func (s *surface) show(w http.ResponseWriter, r *http.Request, p gateway.Principal, id string) error {
	summary, err := s.gw.Conversation(r.Context(), p, gateway.ActionRead, id)
	if err != nil {
		return err
	}
	return s.write(w, r, p, summary)
}

// titleOf returns the title that a client means: newChat means no title.
func titleOf(title string) string {
	if title = strings.TrimSpace(title); title == newChat {
		return ""
	}
	return title
}

// patch sets the title and single keys of the metadata. A blank title changes nothing, unless "generate" asks for a title made
// from the first message. The title newChat removes the title, and the next message sets one.
//
// Both kinds of change are one command, so readers see them at once or not at all. If nothing is left to
// change, no command runs and the response is the unchanged conversation. FirstTitle returns "" if the
// conversation has no message that could become a title.
func (s *surface) patch(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Title    string                     `json:"title"`
		Generate bool                       `json:"generate"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	id := r.PathValue("id")
	c := gateway.Command{Type: gateway.CommandUpdate, Key: r.Header.Get("Idempotency-Key"), Metadata: body.Metadata}
	switch t := titleOf(body.Title); {
	case strings.TrimSpace(body.Title) != "":
		c.Title = &t
	case body.Generate:
		t, err := gateway.FirstTitle(r.Context(), s.gw, p, id)
		if err != nil {
			return err
		}
		if t != "" {
			c.Title = &t
		}
	}
	if c.Title != nil || len(c.Metadata) > 0 {
		if _, err := server.Do(r.Context(), s.gw, p, id, c); err != nil {
			return err
		}
	}
	return s.show(w, r, p, id)
}

type okay struct {
	OK bool `json:"ok"`
}

// delete answers DELETE /api/conversations/{id}. It waits for the commit, so a client that gets the
// response finds the conversation gone from every list.
func (s *surface) delete(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	_, err := server.Do(r.Context(), s.gw, p, r.PathValue("id"), gateway.Command{Type: gateway.CommandDelete})
	return server.Respond(w, okay{true}, err)
}

// markRead answers POST /api/conversations/{id}/read: it marks the conversation as read up to a seq, or all of it without one.
func (s *surface) markRead(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Seq int64 `json:"seq"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	at, err := s.gw.MarkRead(r.Context(), p, r.PathValue("id"), body.Seq)
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, struct {
		okay
		Unread bool  `json:"unread"`
		Read   int64 `json:"read"`
	}{okay{true}, at.Unread, at.Read})
	return nil
}

// markSeen marks as read an answer that was sent to the client. A failure is only logged, because the client has its answer.
func (s *surface) markSeen(ctx context.Context, p gateway.Principal, conversation string, seq int64) {
	if _, err := s.gw.MarkRead(ctx, p, conversation, seq); err != nil && ctx.Err() == nil && !server.Restarting(err) {
		s.srv.Log().Info("read position not saved", "conversation", conversation, "error", err)
	}
}
