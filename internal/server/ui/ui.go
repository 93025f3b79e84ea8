package ui

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"
	"regexp"
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
		base, isFile := strings.CutSuffix(name, ".br")
		if err != nil || !isFile {
			return err // NAME.gz belongs to NAME.br
		}
		f := file{contentType: types[path.Ext(base)], policy: policy, isFixed: hashed.MatchString(base)}
		for _, c := range []struct{ suffix, coding string }{{".br", "br"}, {".gz", "gzip"}} {
			b, err := web.Dist.ReadFile(base + c.suffix)
			if err != nil {
				return err
			}
			f.forms = append(f.forms, newForm(c.coding, b))
		}
		pattern := strings.TrimPrefix(base, "dist")
		if pattern == "/index.html" {
			pattern = "/{$}"
		}
		register(s, pattern, f)
		return nil
	})
	if err != nil {
		panic(err) // they are embedded
	}
}

// hashed are the names that change with the content.
var hashed = regexp.MustCompile(`-[\w-]{8}\.(js|css)$`)

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
	// The client gets the first form that it accepts. The last one may be gzip, and is decompressed for a client that accepts none.
	forms []form
	// isFramed allows the page to show the file in a frame.
	isFramed bool
	// isFixed means that a file with other content has another name.
	isFixed bool
}

// register adds the route of a file.
func register(s *server.Server, pattern string, f file) {
	serve := func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		as, err := f.choose(r.Header.Values("Accept-Encoding"))
		if err != nil {
			return err
		}
		h := w.Header()
		h.Set("Content-Type", f.contentType)
		h.Set("Content-Security-Policy", f.policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		if f.isFramed {
			h.Set("X-Frame-Options", "SAMEORIGIN")
		}
		if as.coding != "" {
			h.Set("Content-Encoding", as.coding)
		}
		h.Add("Vary", "Accept-Encoding")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if f.isFixed {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			// Asked for each time, and not sent again: a new gateway's page is there at once.
			h.Set("Cache-Control", "no-cache")
		}
		h.Set("ETag", as.tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(as.content))
		return nil
	}
	s.Handle(server.Route{Method: http.MethodGet, Pattern: pattern, Access: server.Public, Linkable: true, Handler: serve})
}
