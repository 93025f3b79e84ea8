package native

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/server"
)

// mismatch answers POST /api/conversations/{id}/mismatches: a client reports that its copy of a message differs from the log.
//
// A mismatch means that a client applied the events in another way than the gateway did, which is a bug in
// one of them. The report is counted and logged, and it changes nothing.
func (i inspect) mismatch(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var m inspection.Mismatch
	if err := server.DecodeStrict(r, &m); err != nil {
		return err
	}
	if err := i.turns.Mismatch(r.Context(), p, r.PathValue("id"), m); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
