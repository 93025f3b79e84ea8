package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/leat-dev/leat/gateway"
	"github.com/leat-dev/leat/server"
)

//go:embed static
var static embed.FS

// policy lets the page load its own files and talk to its own gateway, and nothing else. Pictures may come as data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Register adds the page at / and its files below /ui/.
func Register(s *server.Server) {
	all, err := fs.ReadDir(static, "static")
	if err != nil {
		panic(err) // they are embedded
	}
	for _, f := range all {
		b, err := static.ReadFile("static/" + f.Name())
		if err != nil {
			panic(err)
		}
		pattern := "/ui/" + f.Name()
		if f.Name() == "index.html" {
			pattern = "/{$}"
		}
		s.Handle(server.Route{Method: http.MethodGet, Pattern: pattern, Access: server.Public, Handler: file(f.Name(), b)})
	}
}

// types are those of the page's files; the system's table may lack them or have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

func file(name string, b []byte) server.Handler {
	kind := types[path.Ext(name)]
	if kind == "" {
		kind = mime.TypeByExtension(path.Ext(name))
	}
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		h := w.Header()
		h.Set("Content-Type", kind)
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
