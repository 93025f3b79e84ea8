// Responses that exist: reading, stopping and deleting them, and what they answer.

package responses

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// find returns the response that a path names.
func (s *surface) find(r *http.Request, p gateway.Principal, action gateway.Action) (to target, t transcript.Turn, err error) {
	id := r.PathValue("response")
	if to.turn, to.from, err = parseResponse(id); err != nil {
		return to, t, err
	}
	to.conversation, t, err = s.gw.Turn(r.Context(), p, action, to.turn)
	if errors.Is(err, gateway.ErrNotFound) {
		err = errNoResponse
	}
	return to, t, err
}

// retrieve responds with a response as it is now, or streams it.
func (s *surface) retrieve(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	to, _, err := s.find(r, p, gateway.ActionRead)
	if err != nil {
		return err
	}
	o := newObject(to.conversation, to.turn, to.from, settings{})
	w.Header().Set(headerConversation, to.conversation)
	q := r.URL.Query()
	isStream := q.Get("stream") == "true"
	if !isStream && r.ContentLength != 0 {
		// The client for Go asks for a stream in the body of its GET.
		var b struct {
			Stream bool `json:"stream"`
		}
		if err := server.Decode(r, &b); err != nil {
			return err
		}
		isStream = b.Stream
	}
	if !isStream {
		return server.Respond(w, o, s.complete(r.Context(), p, to, o, true))
	}
	after := int64(-1)
	if v := q.Get("starting_after"); v != "" {
		if after, err = strconv.ParseInt(v, 10, 64); err != nil || after < 0 || after > maxNumber*stride {
			return server.Invalid("starting_after: %q is not a sequence number", v)
		}
	}
	if to.from > 0 {
		// A response that doesn't exist must be refused before the stream begins.
		if err := s.complete(r.Context(), p, to, newObject(to.conversation, to.turn, to.from, settings{}), true); err != nil {
			return err
		}
	}
	// A stream counts as a viewer of the user, as on all other surfaces. A single look doesn't.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	return s.stream(w, r, p, to, o, after)
}

// cancel stops the turn of a response and responds with the response. A response that has ended stays as it is.
//
// It waits for the end of the turn, so that the response has the status cancelled and the whole text, and a client that polls sees the same.
func (s *surface) cancel(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	to, t, err := s.find(r, p, gateway.ActionWrite)
	if err != nil {
		return err
	}
	// The turn may end by itself before the stop. That isn't an error: the response then says how it ended.
	if t.Unfinished() {
		if _, err := server.Do(r.Context(), s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandStop, Turn: to.turn}); err != nil {
			return err
		}
	}
	o := newObject(to.conversation, to.turn, to.from, settings{})
	return server.Respond(w, o, s.complete(r.Context(), p, to, o, false))
}

// deletion is the response to a deletion.
type deletion struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	IsDeleted bool   `json:"deleted"`
}

// remove deletes the conversation of a response, if it has no other turn. Single turns can't be deleted.
func (s *surface) remove(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	to, _, err := s.find(r, p, gateway.ActionWrite)
	if err != nil {
		return err
	}
	turns := 0
	err = s.gw.ViewTranscript(r.Context(), p, to.conversation, func(t *transcript.Transcript) bool {
		turns = 0
		for _, turn := range t.Turns {
			if turn.Independent() {
				turns++
			}
		}
		return !t.Earlier || turns > 1
	})
	if err != nil {
		return err
	}
	// A truncate would remove what follows the response too, which the client didn't ask for.
	if turns > 1 {
		return unsupported("a response can be deleted only if it is the only one of its conversation; delete the conversation %q", prefixConversation+to.conversation)
	}
	_, err = server.Do(r.Context(), s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandDelete})
	return server.Respond(w, deletion{r.PathValue("response"), "response", true}, err)
}

// inputItems lists what a response answers: a message, or the outputs of tools and the decisions that continued its turn.
func (s *surface) inputItems(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	to, t, err := s.find(r, p, gateway.ActionRead)
	if err != nil {
		return err
	}
	items := []item{}
	if to.from == 0 {
		err = s.gw.ViewTranscript(r.Context(), p, to.conversation, func(tr *transcript.Transcript) bool {
			items = items[:0]
			for _, m := range tr.Messages {
				if m.Role == event.User && (m.ID == t.Answers || m.StateTurn == to.turn) {
					items = append(items, messageItem(m))
				}
			}
			return len(items) > 0 || !tr.Earlier
		})
	} else {
		items, err = s.replyItems(r.Context(), p, to)
	}
	if err != nil {
		return err
	}
	return respondPage(w, r, items)
}
