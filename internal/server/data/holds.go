package data

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// holds answers GET /api/holds. A legal hold exempts conversations from retention and deletion: one
// conversation, or those of a user.
func (d *surface) holds(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	server.WriteJSON(w, http.StatusOK, map[string]any{"holds": d.gw.Holds().List()})
	return nil
}

// hold answers POST /api/holds. The response has the stored hold, with the time since which it applies.
func (d *surface) hold(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var hold gateway.Hold
	if err := server.DecodeStrict(r, &hold); err != nil {
		return err
	}
	hold, err := d.gw.Holds().Place(r.Context(), p, hold)
	return server.Respond(w, hold, err)
}

// release answers DELETE /api/holds with the hold in the query. The data can be deleted from then on.
func (d *surface) release(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	q := r.URL.Query()
	hold := gateway.Hold{Conversation: q.Get("conversation"), Tenant: q.Get("tenant"), Subject: q.Get("subject")}
	err := d.gw.Holds().Release(r.Context(), p, hold)
	return server.Respond(w, map[string]bool{"released": true}, err)
}
