// The routes of pushed turns: begin one, continue it at an offset, and ask how far it is.

package native

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// The headers of ingest.
const (
	headerOffset  = "Upload-Offset"     // in bytes of the body
	headerTurn    = "Leat-Turn"         // id
	headerState   = "Leat-Turn-State"   // queued, running, waiting or ended
	headerOutcome = "Leat-Turn-Outcome" // of an ended turn
)

// RegisterIngest adds the routes by which producers push turns.
func RegisterIngest(s *server.Server, gw *gateway.Gateway, pushes *push.Service) {
	p := &pushRoutes{s: s, gw: gw, pushes: pushes}
	s.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodPost, Pattern: "/api/conversations/{id}/turns", Handler: p.postTurn, MaxBody: -1, Stream: true},
		{Method: http.MethodHead, Pattern: "/api/turns/{turn}/ingest", Handler: p.headIngest, Producer: true},
		{Method: http.MethodPatch, Pattern: "/api/turns/{turn}/ingest", Handler: p.patchIngest, MaxBody: -1, Stream: true, Producer: true},
	})
}

// pushRoutes answers the requests of producers.
//
// It is separate from native, because a gateway without a push service has none of these routes.
type pushRoutes struct {
	s      *server.Server
	gw     *gateway.Gateway
	pushes *push.Service
}

// postTurn answers POST /api/conversations/{id}/turns?dialect=…: it starts a turn whose stream is the body.
//
// The location of the ingest is sent even with an error, as long as the turn exists, so that the producer
// can resume the turn and doesn't start another one. Dialect names the decoder of the stream; answers is
// the id of the message that the turn answers.
func (n *pushRoutes) postTurn(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := requireIdentity(r); err != nil {
		return err
	}
	query := r.URL.Query()
	producer, ack, err := n.pushes.Push(r.Context(), p, r.PathValue("id"), push.Options{
		Dialect: query.Get("dialect"), Answers: query.Get("answers"), Key: r.Header.Get(headerKey),
	})
	if ack.Turn != "" {
		w.Header().Set("Location", n.s.URL(r, "/api/turns/"+url.PathEscape(ack.Turn)+"/ingest"))
		w.Header().Set(headerTurn, ack.Turn)
	}
	if err != nil {
		return err
	}
	// The body starts at offset 0. Bytes that an earlier request with the same key has committed are skipped. This can happen
	// even if this request created the turn: a quick repeat can attach first, and this request then takes over.
	g := &ingest{n: n, p: p, producer: producer, skip: producer.Offset()}
	return g.start(w, r, http.StatusCreated)
}

// patchIngest answers PATCH /api/turns/{turn}/ingest: it resumes the stream at an offset.
//
// The offset must be exactly the committed one. A smaller offset would repeat bytes and a larger one would
// leave a gap, so both get 409 with the right offset in Upload-Offset. The stream is then detached and not
// ended.
func (n *pushRoutes) patchIngest(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := requireIdentity(r); err != nil {
		return err
	}
	at, err := strconv.ParseUint(r.Header.Get(headerOffset), 10, 63)
	if err != nil {
		return server.Invalid("missing or invalid header %s: send the offset in bytes at which the body continues", headerOffset)
	}
	turn := r.PathValue("turn")
	producer, err := n.pushes.Attach(r.Context(), p, turn)
	if err != nil {
		if errors.Is(err, gateway.ErrTurnOver) {
			w.Header().Set(headerState, string(transcript.TurnEnded))
		}
		return err
	}
	w.Header().Set(headerTurn, turn)
	if offset := producer.Offset(); offset != int64(at) {
		w.Header().Set(headerOffset, strconv.FormatInt(offset, 10))
		wrong := server.Errorf(http.StatusConflict, gateway.ReasonConflict, "the stream continues at offset %d, not at %d", offset, at)
		return errors.Join(wrong, producer.Close(false))
	}
	return (&ingest{n: n, p: p, producer: producer}).start(w, r, http.StatusOK)
}

// headIngest answers HEAD /api/turns/{turn}/ingest: the state of a pushed turn, and the offset at which its stream resumes.
//
// A producer calls it after a broken connection. The offset is missing if the turn has ended, because
// nothing more is accepted then.
func (n *pushRoutes) headIngest(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	turn := r.PathValue("turn")
	progress, err := n.pushes.Progress(r.Context(), p, turn)
	hasOffset := err == nil
	if err != nil && !errors.Is(err, gateway.ErrTurnOver) {
		return err
	}
	_, t, err := n.gw.Turn(r.Context(), p, gateway.ActionAgent, turn)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set(headerTurn, turn)
	h.Set(headerState, string(t.State))
	if t.State == transcript.TurnEnded {
		h.Set(headerOutcome, string(t.Outcome))
	}
	if hasOffset {
		h.Set(headerOffset, strconv.FormatInt(progress.Offset, 10))
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return nil
}

// requireIdentity refuses encoded bodies, because offsets count the bytes of the stream itself.
func requireIdentity(r *http.Request) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return server.Errorf(http.StatusUnsupportedMediaType, server.ReasonInvalid, "unsupported Content-Encoding %s: send the stream without compression", e)
	}
	return nil
}
