package native

import (
	"net/http"
	"strconv"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
)

// transcript answers GET /api/conversations/{id}/transcript: a snapshot, or with ?before= a page of older messages.
//
// A snapshot has the form of the first batch of a stream and a cursor, so a client can read it once and
// then follow the conversation from there. A page has no cursor: older messages don't change any more,
// except by a truncate.
func (n *native) transcript(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	q := r.URL.Query()
	limit := 0
	if v := q.Get("limit"); v != "" {
		var err error
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > feed.MaxPage {
			return server.Invalid("invalid limit %q: use 1 to %d", v, feed.MaxPage)
		}
		if q.Get("before") == "" {
			return server.Invalid("limit without before: a snapshot has no limit; send before to get a page of older messages")
		}
	}
	f, err := n.gw.Feed(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.Release()
	var b []byte
	if before := q.Get("before"); before != "" {
		page, err := f.Page(r.Context(), before, limit)
		if err != nil {
			return err
		}
		if b, err = page.AppendJSON(nil); err != nil {
			return err
		}
	} else {
		snapshot, err := f.Poll(r.Context(), "", 0)
		if err != nil {
			return err
		}
		if b, err = snapshot.Encode(feed.JSON); err != nil {
			return err
		}
	}
	server.WriteRawJSON(w, http.StatusOK, b)
	return nil
}

// turn answers GET /api/turns/{turn}.
//
// It returns the state of a turn and its conversation, for clients that have only the id of the turn.
func (n *native) turn(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	conversation, t, err := n.gw.Turn(r.Context(), p, gateway.ActionRead, r.PathValue("turn"))
	return server.Respond(w, map[string]any{"conversation": conversation, "turn": &t}, err)
}
