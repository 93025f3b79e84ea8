package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/web"
)

// policy lets the page load its own files and talk to its own gateway, and nothing else. Pictures may come as data, and no string
// becomes a script or markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Register adds the page at / and its files below /ui/.
func Register(s *server.Server) {
	err := fs.WalkDir(web.Dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := web.Dist.ReadFile(name)
		if err != nil {
			return err
		}
		pattern := strings.TrimPrefix(name, "dist")
		if pattern == "/index.html" {
			pattern = "/{$}"
		}
		s.Handle(server.Route{Method: http.MethodGet, Pattern: pattern, Access: server.Public, Linkable: true, Handler: file(path.Base(name), b)})
		return nil
	})
	if err != nil {
		panic(err) // they are embedded
	}
}

// types are those of the page's files; the system's table may lack them or have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file serves one built file of the page. Its ETag is the hash of its content, so a browser that has the file gets 304.
func file(name string, b []byte) server.Handler {
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		h := w.Header()
		h.Set("Content-Type", types[path.Ext(name)])
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		// Asked for each time, and not sent again: a new gateway's page is there at once.
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(b))
		return nil
	}
}
