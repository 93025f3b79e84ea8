package native

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// The headers of ingest.
const (
	HeaderOffset  = "Upload-Offset"     // in bytes of the body
	HeaderTurn    = "Leat-Turn"         // id
	HeaderState   = "Leat-Turn-State"   // queued, running, waiting or ended
	HeaderOutcome = "Leat-Turn-Outcome" // of an ended turn
)

// postTurn answers POST /api/conversations/{id}/turns?dialect=…: a turn whose stream is the body.
func (n *native) postTurn(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := plain(r); err != nil {
		return err
	}
	q := r.URL.Query()
	pr, ack, err := n.gw.Push(r.Context(), p, r.PathValue("id"), gateway.PushOptions{
		Dialect: q.Get("dialect"), Answers: q.Get("answers"), Key: r.Header.Get(HeaderKey),
	})
	if ack.Turn != "" {
		w.Header().Set("Location", n.s.URL(r, "/api/turns/"+url.PathEscape(ack.Turn)+"/ingest"))
		w.Header().Set(HeaderTurn, ack.Turn)
	}
	if err != nil {
		return err
	}
	// The body begins at its beginning, and what of it is taken already is passed over. That may be so even where the key
	// is new to this request: its repeat can have been quicker to attach, and was cut off by this one.
	g := &ingest{n: n, p: p, producer: pr, w: w, r: r, skip: pr.Offset()}
	return g.run(http.StatusCreated)
}

// patchIngest answers PATCH /api/turns/{turn}/ingest: the body goes on at an offset.
func (n *native) patchIngest(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := plain(r); err != nil {
		return err
	}
	at, err := strconv.ParseUint(r.Header.Get(HeaderOffset), 10, 63)
	if err != nil {
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "%s is needed: the offset in bytes at which the body goes on", HeaderOffset)
	}
	turn := r.PathValue("turn")
	pr, err := n.gw.Attach(r.Context(), p, turn)
	if err != nil {
		if errors.Is(err, gateway.ErrTurnOver) {
			w.Header().Set(HeaderState, string(transcript.Ended))
		}
		return err
	}
	w.Header().Set(HeaderTurn, turn)
	if offset := pr.Offset(); offset != int64(at) {
		w.Header().Set(HeaderOffset, strconv.FormatInt(offset, 10))
		wrong := server.Errorf(http.StatusConflict, gateway.ReasonConflict, "the body goes on at %d, not at %d", offset, at)
		return errors.Join(wrong, pr.Close(false))
	}
	return (&ingest{n: n, p: p, producer: pr, w: w, r: r}).run(http.StatusOK)
}

// headIngest answers HEAD /api/turns/{turn}/ingest: how far a pushed turn has come.
func (n *native) headIngest(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	turn := r.PathValue("turn")
	offset, _, err := n.gw.PushStatus(r.Context(), p, turn)
	known := err == nil
	if err != nil && !errors.Is(err, gateway.ErrTurnOver) {
		return err
	}
	_, t, err := n.gw.Turn(r.Context(), p, gateway.ActionAgent, turn)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set(HeaderTurn, turn)
	h.Set(HeaderState, string(t.State))
	if t.State == transcript.Ended {
		h.Set(HeaderOutcome, string(t.Outcome))
	}
	if known {
		h.Set(HeaderOffset, strconv.FormatInt(offset, 10))
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return nil
}

// plain refuses encoded bodies: an offset counts bytes as they are sent.
func plain(r *http.Request) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return server.Errorf(http.StatusUnsupportedMediaType, server.ReasonInvalid, "Content-Encoding %s: the stream comes as it is", e)
	}
	return nil
}
