// The Control UI, from a folder that the operator names.

package openclaw

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"os"
	gopath "path"
	"regexp"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// registerPage adds the route of the Control UI.
func (s *surface) registerPage(folder string) {
	files := os.DirFS(folder)
	s.srv.Handle(server.Route{
		Method: http.MethodGet, Pattern: path + "/{file...}", Access: server.Public, Linkable: true,
		Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error { return s.page(w, r, files) },
	})
}

// page serves a file of the Control UI. Every other address is one of the page's own views.
func (s *surface) page(w http.ResponseWriter, r *http.Request, files fs.FS) error {
	name := gopath.Clean(r.PathValue("file"))
	if !fs.ValidPath(name) {
		return gateway.ErrNotFound
	}
	b, err := fs.ReadFile(files, name)
	if err == nil && name != indexFile {
		h := w.Header()
		h.Set("Content-Type", contentType(name))
		if strings.HasPrefix(name, "assets/") { // their names change with their content
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		http.ServeContent(w, r, name, s.start, bytes.NewReader(b))
		return nil
	}
	if err != nil && strings.Contains(gopath.Base(name), ".") && name != "." {
		return gateway.ErrNotFound // a file that the package doesn't have
	}
	if b, err = fs.ReadFile(files, indexFile); errors.Is(err, fs.ErrNotExist) {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "outputs.openclaw_ui has no %s; set it to the folder dist/control-ui of the package openclaw", indexFile)
	} else if err != nil {
		return err
	}
	// The page has relative addresses and views below its own address, so it needs a base. The attribute says where its gateway is.
	base := s.srv.URL(r, path)
	b = bytes.Replace(b, []byte("<head>"), []byte(`<head><base href="`+html.EscapeString(base)+`/">`), 1)
	b = bytes.Replace(b, []byte("<html "), []byte(`<html data-openclaw-control-ui-base-path="`+html.EscapeString(base)+`" `), 1)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policyOf(b))
	h.Set("X-Frame-Options", "DENY")
	_, err = w.Write(b)
	return err
}

const indexFile = "index.html"

// inlineScript finds the scripts of a page that aren't files.
var inlineScript = regexp.MustCompile(`(?s)<script(?:\s[^>]*)?>(.*?)</script>`)

// policyOf returns the security policy of the page: it runs no other scripts than its own and connects to no other server. The dashboard and its
// cookie have the same origin, so a script from a message could do whatever the user can.
func policyOf(page []byte) string {
	scripts := "'self'"
	for _, m := range inlineScript.FindAllSubmatch(page, -1) {
		if len(m[1]) == 0 {
			continue // a file
		}
		sum := sha256.Sum256(m[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'self'; script-src " + scripts + "; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: https:; " +
		"media-src 'self' data: blob:; connect-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
}

// contentType returns the type of a file by its name.
func contentType(name string) string {
	if t := mime.TypeByExtension(gopath.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}
