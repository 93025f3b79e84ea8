// Messages that an agent publishes as events without a question, and the conversations in which they are stored.

package elizaws

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// assistant is the stream of agent events with which an agent writes unasked.
	assistant = "assistant"
	// clientChat is the source of messages that a chat's own stream shows.
	clientChat = "client_chat"
	// autonomy is the source of an unasked message without one.
	autonomy = "autonomy"
	// recentPage and recentPages bound the search for the most recent conversation of a user. The admin's list has the
	// conversations of all users, possibly none of the admin's own.
	recentPage  = 50
	recentPages = 20
)

// speech is an unasked message of an agent.
type speech struct{ text, source string }

// speechOf returns the message of an event, or nil if it has none: another stream, no text, or a message that a chat's own
// stream shows. An event with a room but without a source belongs to the turn that runs in the room.
//
// Values of other types than text are ignored: the events of agents have no schema.
func speechOf(in *signalBody) *speech {
	var data struct {
		Text   any `json:"text"`
		Source any `json:"source"`
	}
	if in.Stream != assistant || json.Unmarshal(in.Data, &data) != nil {
		return nil // not an object, so it has no text
	}
	text, _ := data.Text.(string)
	source, _ := data.Source.(string)
	sp := &speech{strings.TrimSpace(text), strings.TrimSpace(source)}
	if sp.text == "" || sp.source == clientChat || sp.source == "" && in.RoomID != "" {
		return nil
	}
	sp.source = cmp.Or(sp.source, autonomy)
	return sp
}

// room returns the conversation for an unasked message: the named one, else the one that p has open, else p's most recent one.
// It returns "" if p has none.
//
// An open conversation that the user may no longer write in is skipped and not an error. The search for
// the most recent conversation reads pages and stops at recentPages, so that an admin without any
// conversation doesn't cause a scan of all of them.
func (s *surface) room(ctx context.Context, p gateway.Principal, requested string) (string, error) {
	if requested != "" {
		return requested, nil
	}
	if err := gateway.Decide(p, gateway.ActionAgent, nil); err != nil {
		return "", err
	}
	if id := s.Hub.Active(p); id != "" {
		_, err := s.gw.Conversation(ctx, p, gateway.ActionAgent, id)
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, gateway.ErrNotFound) && !errors.Is(err, gateway.ErrForbidden) {
			return "", err
		}
	}
	var before *journal.Summary
	for range recentPages {
		page, err := s.gw.List(ctx, p, before, recentPage)
		if err != nil {
			return "", err
		}
		for i := range page {
			// The admin's list has all users' conversations; only the admin's own ones count.
			if c := &page[i]; c.Tenant == p.Tenant && c.Owner == p.Subject && gateway.Decide(p, gateway.ActionAgent, c) == nil {
				return c.ID, nil
			}
		}
		if len(page) < recentPage {
			break
		}
		before = &page[len(page)-1]
	}
	return "", nil
}

// say adds a message to a conversation. Readers get it once it is stored.
//
// The message is added outside of turns. Its source marks it as unasked.
func (s *surface) say(ctx context.Context, p gateway.Principal, conversation, key string, sp *speech) (message string, err error) {
	ack, err := s.gw.Do(ctx, p, conversation, gateway.Command{Type: gateway.CommandInject, Key: key, Message: &gateway.CommandMessage{
		Role: event.Assistant, Text: sp.text, Source: sp.source,
	}})
	return ack.Message, err
}

// published is the response to an event.
type published struct {
	OK bool   `json:"ok"`
	ID string `json:"eventId"`
	// Conversation and Message are set if the event was a message.
	Conversation string `json:"conversationId,omitempty"`
	Message      string `json:"messageId,omitempty"`
}

var errNowhere = server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no conversation for this message; send roomId")
