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
	"github.com/leat-dev/leat/internal/voice/vad"
	"github.com/leat-dev/leat/web"
)

// policy lets the page load its own files and talk to its own gateway, and nothing else. Pictures may come as data, and no string
// becomes a script or markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Register adds the page at / and its files below /ui/. If detector is not nil, the page can load it in a frame.
func Register(s *server.Server, detector *vad.Archive) {
	policy := policy
	if detector != nil {
		policy += "; frame-src 'self'"
		registerDetector(s, detector)
	}
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
		register(s, pattern, file{contentType: types[path.Ext(name)], policy: policy, content: b})
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

// file is a file of the page. It is the same for all users.
type file struct {
	contentType, policy string
	content             []byte
	// encoding is that of the content; empty if it has none.
	encoding string
	// isFramed allows the page to show the file in a frame.
	isFramed bool
}

// register adds the route of a file. The ETag is the hash of the content, so a browser that has the file gets 304.
func register(s *server.Server, pattern string, f file) {
	sum := sha256.Sum256(f.content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	serve := func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		h := w.Header()
		h.Set("Content-Type", f.contentType)
		h.Set("Content-Security-Policy", f.policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		if f.isFramed {
			h.Set("X-Frame-Options", "SAMEORIGIN")
		}
		if f.encoding != "" {
			h.Set("Content-Encoding", f.encoding)
		}
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		// Asked for each time, and not sent again: a new gateway's page is there at once.
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
		return nil
	}
	s.Handle(server.Route{Method: http.MethodGet, Pattern: pattern, Access: server.Public, Linkable: true, Handler: serve})
}
