package channels

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/server"
)

// attachment attaches a chat to a conversation, or detaches it.
type attachment func(ctx context.Context, channel, chat, conversation string) error

// attach answers POST /api/channels/{name}/attach.
func (s *surface) attach(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	changes := []attachment{s.pipeline.Attach}
	if s.plugins != nil {
		changes = append(changes, s.plugins.Attach)
	}
	return change(w, r, changes)
}

// detach answers POST /api/channels/{name}/detach.
func (s *surface) detach(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	changes := []attachment{s.pipeline.Detach}
	if s.plugins != nil {
		changes = append(changes, s.plugins.Detach)
	}
	return change(w, r, changes)
}

// change calls the first of the changes that knows the channel. A built-in channel comes before a plugin with the same name.
func change(w http.ResponseWriter, r *http.Request, changes []attachment) error {
	var in struct {
		Chat         string `json:"chat"`
		Conversation string `json:"conversation"`
	}
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	if in.Chat == "" || in.Conversation == "" {
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "chat and conversation are required")
	}
	for _, f := range changes {
		switch err := f(r.Context(), r.PathValue("name"), in.Chat, in.Conversation); {
		case errors.Is(err, channel.ErrUnknownChannel), errors.Is(err, host.ErrUnknownChannel):
			continue
		case errors.Is(err, channel.ErrAttached), errors.Is(err, host.ErrAttached):
			return server.Errorf(http.StatusConflict, server.ReasonExists, "the chat shows this conversation already")
		case err != nil:
			return err
		}
		server.WriteJSON(w, http.StatusOK, accepted{true})
		return nil
	}
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no such channel")
}
