package files

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/server"
	store "github.com/leat-dev/leat/internal/store/files"
)

// surface has the handlers. The service checks access, sizes and quotas.
type surface struct {
	files *attachments.Service
}

// Register adds the routes to a server.
func Register(s *server.Server, service *attachments.Service) {
	f := &surface{service}
	s.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/conversations/{id}/files/{media}", Access: server.Authenticated, Handler: f.get})
	// The gateway has its own limit for files.
	s.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/conversations/{id}/files", Access: server.Authenticated, Handler: f.createFile, MaxBody: maxBody})
	f.uploads(s)
	s.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/files/download", Access: server.Authenticated, Handler: f.download})
}

// createFile creates a file from the body, with the name in the query and the type in Content-Type.
//
// Multipart forms are refused, because the whole form would have to be parsed to find the file; a page can
// send the file itself.
func (f *surface) createFile(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return server.Errorf(http.StatusUnsupportedMediaType, server.ReasonInvalid, "send the file itself as the body, and its name as ?name=")
	}
	q := r.URL.Query()
	m, err := f.files.PutFile(r.Context(), p, r.PathValue("id"), agent.File{
		Name: q.Get("name"), Alt: q.Get("alt"), MIME: r.Header.Get("Content-Type"),
	}, r.Body)
	if err != nil {
		return err
	}
	w.Header().Set("Location", m.URL)
	server.WriteJSON(w, http.StatusCreated, map[string]any{"media": m})
	return nil
}

// policy disables everything in a response that a browser might take for a page.
const policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// get answers GET /api/conversations/{id}/files/{media}. The id of the media is a digest of its bytes, so it
// identifies the content as well as the file.
func (f *surface) get(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return f.serveStored(w, r, p, r.PathValue("id"), r.PathValue("media"))
}

// serveStored serves a file of a conversation. Its Etag is the id, and browsers may cache it for a year without
// asking again. A user who loses access keeps what the browser has cached, but that user has already seen it.
func (f *surface) serveStored(w http.ResponseWriter, r *http.Request, p gateway.Principal, conversation, id string) error {
	file, m, err := f.files.OpenFile(r.Context(), p, conversation, id)
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	w.Header().Add("Vary", "Authorization, Cookie") // so that on a shared browser the cache of one user serves no other
	w.Header().Set("Etag", `"`+id+`"`)
	serve(w, r, file, m, time.Time{})
	return nil
}

// download serves a file of the workspace by its path, or a file of a conversation by its id.
//
// The Etag of a workspace file is made from its origin, which identifies the stored version, and the
// modification time serves clients that only know dates.
func (f *surface) download(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	q := r.URL.Query()
	if id := q.Get("id"); id != "" {
		return f.serveStored(w, r, p, q.Get("conversation"), id)
	}
	if !q.Has("path") {
		return server.Invalid("say which file: ?path=, or ?conversation= and ?id=")
	}
	file, m, err := f.files.OpenPath(p, q.Get("path"))
	if err != nil {
		return err
	}
	defer file.Close()
	// The file may be written to again, so it is not cached without revalidation.
	sum := sha256.Sum256([]byte(file.Origin))
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Etag", `"`+hex.EncodeToString(sum[:12])+`"`)
	serve(w, r, file, m, file.Info.ModTime())
	return nil
}

// serve writes a file or the requested range of it. With ?download, the browser saves it, under the name in that parameter if
// there is one.
//
// Only types that can't contain a script are displayed. The policy and the sandbox are a second
// protection, if a browser treats a file as a page anyway. http.ServeContent answers ranges, which players
// of sound and video need.
func serve(w http.ResponseWriter, r *http.Request, file io.ReadSeeker, m event.Media, changed time.Time) {
	mode, name := "attachment", m.Name
	q := r.URL.Query()
	if store.Inline(m.MIME) && !q.Has("download") {
		mode = "inline"
	}
	if other := store.Name(q.Get("download")); other != "" {
		name = other
	}
	kind := m.MIME
	if kind == "text/plain" {
		kind += "; charset=utf-8"
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", disposition(mode, name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-site")
	http.ServeContent(w, r, "", changed, file)
}

// disposition returns the Content-Disposition header: display or save, and the file name. Names that aren't ASCII are
// encoded as in RFC 2231, which [mime.FormatMediaType] does. A name that it can't encode is left out, and the browser
// chooses one.
func disposition(mode, name string) string {
	if name == "" {
		return mode
	}
	if s := mime.FormatMediaType(mode, map[string]string{"filename": name}); s != "" {
		return s
	}
	return mode
}
