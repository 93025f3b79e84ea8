package data

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/server"
)

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
