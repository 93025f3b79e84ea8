// Conversations as objects.
//
// They are Leat's conversations, so those that were begun in the dashboard or by another client can be named here as well. Their metadata is the part
// of Leat's metadata that consists of texts.

package responses

import (
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/models"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// conversation is a conversation in the format of the API.
type conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  map[string]string `json:"metadata"`
}

// maxItems limits the items of a request, as OpenAI does.
const maxItems = 20

// newConversation returns a conversation. Metadata of other clients that isn't a text can't be shown.
func newConversation(s *journal.Summary) conversation {
	c := conversation{prefixConversation + s.ID, "conversation", s.Created / 1000, map[string]string{}}
	for k, v := range s.Metadata {
		var text string
		if len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &text) == nil {
			c.Metadata[k] = text
		}
	}
	return c
}

// conversationBody is the JSON of a request that creates or changes a conversation.
type conversationBody struct {
	Items    []inputItem        `json:"items"`
	Metadata *map[string]string `json:"metadata"`
}

// metadata returns the metadata as the gateway stores it.
func (b *conversationBody) metadata() (map[string]json.RawMessage, error) {
	if b.Metadata == nil {
		return nil, nil
	}
	m := map[string]json.RawMessage{}
	for k, v := range *b.Metadata {
		raw, err := server.Marshal(v)
		if err != nil {
			return nil, err
		}
		m[k] = raw
	}
	return m, nil
}

// messagesOf returns items as messages.
func messagesOf(items []inputItem) (list []gateway.CommandMessage, err error) {
	if len(items) > maxItems {
		return nil, server.Invalid("items: at most %d", maxItems)
	}
	var pictures models.Pictures
	for i := range items {
		m, isMessage, err := items[i].message(&pictures)
		if err != nil {
			return nil, err
		}
		if !isMessage {
			return nil, unsupported("items: only messages with content can be added, and not %q", items[i].Type)
		}
		list = append(list, *m)
	}
	return list, nil
}

// createConversation creates a conversation, which is listed: unlike that of a single response, it was asked for.
func (s *surface) createConversation(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var b conversationBody
	if r.ContentLength != 0 {
		if err := server.Decode(r, &b); err != nil {
			return err
		}
	}
	messages, err := messagesOf(b.Items)
	if err != nil {
		return err
	}
	metadata, err := b.metadata()
	if err != nil {
		return err
	}
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	c, _, err := s.gw.Create(ctx, p, gateway.CreateOptions{Messages: messages, Metadata: metadata, Key: r.Header.Get("Idempotency-Key")})
	return server.Respond(w, newConversation(&c), err)
}

// conversation responds with a conversation, also one that another client has begun.
func (s *surface) conversation(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.gw.Conversation(r.Context(), p, gateway.ActionRead, conversationID(r.PathValue("id")))
	return server.Respond(w, newConversation(&c), err)
}

// updateConversation replaces the metadata.
func (s *surface) updateConversation(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id := conversationID(r.PathValue("id"))
	var b conversationBody
	if err := server.Decode(r, &b); err != nil {
		return err
	}
	c, err := s.gw.Conversation(r.Context(), p, gateway.ActionWrite, id)
	if err != nil {
		return err
	}
	if b.Metadata == nil {
		return server.Invalid("metadata: missing")
	}
	metadata, err := b.metadata()
	if err != nil {
		return err
	}
	// The API replaces all metadata, and Leat changes single keys. Keys that the API doesn't show stay.
	for k := range newConversation(&c).Metadata {
		if _, ok := metadata[k]; !ok {
			metadata[k] = json.RawMessage("null")
		}
	}
	if len(metadata) > 0 {
		if _, err := server.Do(r.Context(), s.gw, p, id, gateway.Command{Type: gateway.CommandUpdate, Metadata: metadata}); err != nil {
			return err
		}
	}
	return s.conversation(w, r, p)
}

// deleteConversation deletes a conversation with all its responses. Its id can't be used again.
func (s *surface) deleteConversation(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id := conversationID(r.PathValue("id"))
	_, err := server.Do(r.Context(), s.gw, p, id, gateway.Command{Type: gateway.CommandDelete})
	return server.Respond(w, deletion{prefixConversation + id, "conversation.deleted", true}, err)
}

// items returns all items of a conversation, the oldest first.
func (s *surface) items(r *http.Request, p gateway.Principal) (items []item, err error) {
	err = s.gw.ViewTranscript(r.Context(), p, conversationID(r.PathValue("id")), func(t *transcript.Transcript) bool {
		items = itemsOf(t)
		return !t.Earlier
	})
	return items, err
}

// listItems lists what a conversation has. The whole log is read, because the pages of the API may begin anywhere.
func (s *surface) listItems(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	items, err := s.items(r, p)
	if err != nil {
		return err
	}
	return respondPage(w, r, items)
}

// addItems adds messages that start no turn.
func (s *surface) addItems(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var b conversationBody
	if err := server.Decode(r, &b); err != nil {
		return err
	}
	messages, err := messagesOf(b.Items)
	if err != nil {
		return err
	}
	// The messages are added one by one. If one of them is refused, those before it remain, as with separate requests.
	ids := map[string]bool{}
	for i := range messages {
		ack, err := server.Do(r.Context(), s.gw, p, conversationID(r.PathValue("id")), gateway.Command{Type: gateway.CommandInject, Message: &messages[i]})
		if err != nil {
			return err
		}
		ids[prefixMessage+ack.Message] = true
	}
	list, err := s.items(r, p)
	if err != nil {
		return err
	}
	var items []item
	for _, entry := range list {
		if ids[entry.ID] {
			items = append(items, entry)
		}
	}
	return server.Respond(w, newPage(items, false), nil)
}

// itemOf returns the item that a path names.
func (s *surface) itemOf(r *http.Request, p gateway.Principal) (entry item, err error) {
	items, err := s.items(r, p)
	if err != nil {
		return entry, err
	}
	for _, entry := range items {
		if entry.ID == r.PathValue("item") {
			return entry, nil
		}
	}
	return entry, server.Errorf(http.StatusNotFound, server.ReasonNotFound, "Item not found.")
}

// item responds with one item. An item of an agent that is still writing has the status in_progress and the text so far.
func (s *surface) item(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	entry, err := s.itemOf(r, p)
	return server.Respond(w, entry, err)
}

// deleteItem refuses to delete an item, since conversations can only be truncated or deleted.
func (s *surface) deleteItem(_ http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if _, err := s.itemOf(r, p); err != nil {
		return err
	}
	return unsupported("single items of a conversation can't be deleted; delete the conversation")
}
