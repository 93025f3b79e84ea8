package data

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/server"
)

// Options are the functions that the routes call.
//
// All of them are required.
type Options struct {
	Retention *data.Retention
	Purger    *data.Purger
	Exporter  *data.Exporter
	Importer  *data.Importer
}

// surface has the handlers. It has no state of its own.
type surface struct {
	Options
	s  *server.Server
	gw *gateway.Gateway
}

// Register adds the routes to a server.
//
// Everything except the export is for the admin. A user may export only the user's own data, which the
// Exporter checks. The import has no limit on its body, because an export may be larger than any limit.
func Register(s *server.Server, gw *gateway.Gateway, opt Options) {
	d := &surface{opt, s, gw}
	s.HandleAll(server.Admin, []server.Route{
		{Method: http.MethodGet, Pattern: "/api/audit", Handler: d.audit, Stream: true},
		{Method: http.MethodGet, Pattern: "/api/holds", Handler: d.holds},
		{Method: http.MethodPost, Pattern: "/api/holds", Handler: d.hold},
		{Method: http.MethodDelete, Pattern: "/api/holds", Handler: d.release},
		{Method: http.MethodGet, Pattern: "/api/retention", Handler: d.expired},
		{Method: http.MethodPost, Pattern: "/api/retention", Handler: d.expire, Stream: true},
		{Method: http.MethodDelete, Pattern: "/api/subjects/{subject}", Handler: d.purge, Stream: true},
		{Method: http.MethodGet, Pattern: "/api/subjects/{subject}/export", Handler: d.export, Access: server.Authenticated, Stream: true},
		{Method: http.MethodPost, Pattern: "/api/import", Handler: d.load, MaxBody: -1, Stream: true},
	})
}

// flag parses a boolean query parameter.
//
// A parameter without a value, as in ?dry_run, is true.
func flag(r *http.Request, name string) (bool, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return r.URL.Query().Has(name), nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, server.Invalid("%s is %q; it is true or false", name, v)
	}
	return b, nil
}

// since parses a time: RFC 3339, epoch milliseconds, or a duration before now such as 24h.
//
// Without the parameter it returns 0, which means from the start. Negative durations are refused, because
// they would be in the future.
func since(r *http.Request) (int64, error) {
	v := r.URL.Query().Get("since")
	if v == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return n, nil
	}
	if d, err := time.ParseDuration(v); err == nil && d >= 0 {
		return time.Now().Add(-d).UnixMilli(), nil
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return t.UnixMilli(), nil
	}
	return 0, server.Invalid("since is %q; write it as 24h, as 2006-01-02T15:04:05Z or as epoch milliseconds", v)
}

// expired answers GET /api/retention: what a sweep would delete now, without deleting it.
func (d *surface) expired(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	return d.sweep(w, r, true)
}

// expire answers POST /api/retention: it deletes what has expired, unless dry_run asks only for a report.
func (d *surface) expire(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	dry, err := flag(r, "dry_run")
	if err != nil {
		return err
	}
	return d.sweep(w, r, dry)
}

// sweep runs the retention rules once over all conversations and responds with the counts. A legal hold
// wins over every rule.
func (d *surface) sweep(w http.ResponseWriter, r *http.Request, dry bool) error {
	s, err := d.Retention.Sweep(r.Context(), dry)
	return server.Respond(w, s, err)
}

// purge answers DELETE /api/subjects/{subject}: it deletes all data of a user. The tenant is empty if the
// gateway has no tenants.
func (d *surface) purge(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	dry, err := flag(r, "dry_run")
	if err != nil {
		return err
	}
	of := data.Subject{Tenant: r.URL.Query().Get("tenant"), Subject: r.PathValue("subject")}
	result, err := d.Purger.Purge(r.Context(), p, of, dry)
	return server.Respond(w, result, err)
}

// holds answers GET /api/holds. A legal hold exempts conversations from retention and deletion: one
// conversation, or those of a user.
func (d *surface) holds(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	return server.Respond(w, map[string]any{"holds": d.gw.Holds().List()}, nil)
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

// export sends the stored data of a subject. A user need not name its tenant.
//
// Permission is checked before the status is sent, so a refusal is an ordinary error. A failure after that
// aborts the connection, and
// the file lacks the line that marks its end. A failed
// write means that the client is gone, and needs no report.
func (d *surface) export(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	of := data.Subject{Tenant: r.URL.Query().Get("tenant"), Subject: r.PathValue("subject")}
	if !p.Admin && of.Tenant == "" {
		of.Tenant = p.Tenant
	}
	if err := d.Exporter.Check(p, of); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="export.ndjson"`)
	st, err := d.s.OpenStream(w, r, http.StatusOK, server.NDJSON)
	if err != nil || st.Head() {
		return err
	}
	output := &lines{st: st}
	var writeErr error // set once a write has failed
	err = d.Exporter.Export(r.Context(), p, of, func(line []byte) error {
		writeErr = output.raw(line)
		return writeErr
	})
	if err == nil {
		writeErr = output.flush()
	}
	if err != nil && writeErr == nil {
		d.abort("export", err)
	}
	return nil
}

// load imports the body. If it fails, the part that was imported stays, and the response has its size.
//
// Importing the same file again is safe: conversations that exist unchanged are counted and skipped, so an
// interrupted import can simply be repeated.
func (d *surface) load(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	result, err := d.Importer.Import(r.Context(), p, r.Body)
	if errors.Is(err, data.ErrFile) {
		return server.Invalid("%v; %s", err, progress(result))
	}
	return server.Respond(w, result, err)
}

// progress describes how far an import came, for the text of its error.
func progress(n data.Importing) string {
	return fmt.Sprintf("%d imported before it, %d unchanged, %d refused", n.Imported, n.Unchanged, n.RefusedCount)
}
