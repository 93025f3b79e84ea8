package elizaws

import (
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
	// assistant is the stream of agent events by which an agent speaks of its own accord.
	assistant = "assistant"
	// clientChat is the source of what a chat's own stream shows already.
	clientChat = "client_chat"
	// autonomy is the source of a speech that names none.
	autonomy = "autonomy"
	// recentPage is how many conversations are looked at at once for the most recent one of somebody's own, and recentPages how
	// often: an admin sees everybody's, and may have none.
	recentPage  = 50
	recentPages = 20
)

// speech is what an agent says of its own accord.
type speech struct{ text, source string }

// speechOf returns what an event says; nil where it says nothing: other streams, no text, and what a chat's own stream shows
// already. An event that names a room and no source tells of the turn that runs there.
func speechOf(in *sent) *speech {
	var said struct {
		Text   any `json:"text"`
		Source any `json:"source"`
	}
	if in.Stream != assistant || json.Unmarshal(in.Data, &said) != nil {
		return nil // a payload that is no object has no text
	}
	text, _ := said.Text.(string)
	source, _ := said.Source.(string)
	sp := &speech{strings.TrimSpace(text), strings.TrimSpace(source)}
	if sp.text == "" || sp.source == clientChat || sp.source == "" && in.RoomID != "" {
		return nil
	}
	if sp.source == "" {
		sp.source = autonomy
	}
	return sp
}

// room returns the conversation in which p's agent speaks: the one that is named, else the one that p looks at, else p's most
// recent; empty where there is none.
func (s *surface) room(ctx context.Context, p gateway.Principal, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if err := gateway.Decide(p, gateway.ActionAgent, nil); err != nil {
		return "", err
	}
	if id := s.opt.Hub.Active(p); id != "" {
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
			// An admin sees everybody's, and speaks in none of them unasked.
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

// say adds a speech to a conversation. Whoever watches is told once it is stored.
func (s *surface) say(ctx context.Context, p gateway.Principal, conversation, key string, sp *speech) (message string, err error) {
	ack, err := s.gw.Do(ctx, p, conversation, gateway.Command{Type: gateway.CommandInject, Key: key, Message: &gateway.CommandMessage{
		Role: event.Assistant, Text: sp.text, Source: sp.source,
	}})
	return ack.Message, err
}

// published is the answer to an event.
type published struct {
	OK bool   `json:"ok"`
	ID string `json:"eventId"`
	// Where it was said, and as what.
	Conversation string `json:"conversationId,omitempty"`
	Message      string `json:"messageId,omitempty"`
}

var errNowhere = server.Errorf(http.StatusNotFound, server.ReasonNotFound, "there is no conversation to say it in")
