package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/voice/vad"
	"github.com/leat-dev/leat/web"
)

// policy lets the page load its own files and talk to its own gateway, and nothing else. Pictures may come as data, and no string
// becomes a script or markup. blob: is for pictures and sound that the page has fetched with its credentials. Scripts
// can't create elements from strings (Trusted Types), so a mistake in the page doesn't turn a conversation into a
// script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src 'self'; " +
	"frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Register adds the page at / and its files below /ui/. If detector is not nil, the page can load it in a frame. The
// files are embedded, so an error can only be a mistake of the build, and panics at the start.
func Register(s *server.Server, detector *vad.Archive) {
	registerFrames(s)
	registerWorkerFrame(s)
	if detector != nil {
		registerDetector(s, detector)
	}
	err := fs.WalkDir(web.Dist, "dist", func(name string, d fs.DirEntry, err error) error {
		base, isFile := strings.CutSuffix(name, ".br")
		if err != nil || !isFile {
			return err // NAME.gz belongs to NAME.br
		}
		f := file{contentType: types[path.Ext(base)], policy: policy, isFixed: hashed.MatchString(base), isLoadedByFrame: path.Base(base) == mermaid()}
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

// hashed are the names that change with the content. The build adds eight characters of the content's hash to them.
var hashed = regexp.MustCompile(`-[\w-]{8}\.(js|css)$`)

// types are those of the page's files; the system's table may lack them or have others. A file with another extension
// gets no type, and the browser doesn't guess one.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",

	".webmanifest": "application/manifest+json",
}

// file is a file of the page. It is the same for all users.
type file struct {
	contentType, policy string
	// The client gets the first form that it accepts. The last one may be gzip, and is decompressed for a client that accepts none.
	forms []form
	// isFramed allows the page to show the file in a frame.
	isFramed bool
	// isLoadedByFrame allows a sandboxed frame, whose origin is null, to load the file.
	isLoadedByFrame bool
	// isFixed means that a file with other content has another name.
	isFixed bool
}

// register adds the route of a file. The routes are public, because the files contain nothing of a user and the login
// is part of the page. The ETag differs for each coding, as RFC 9110 requires of representations that differ in their
// bytes.
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
	s.Handle(server.Route{Method: http.MethodGet, Pattern: pattern, Access: server.Public, Linkable: true, AnyOrigin: f.isLoadedByFrame, Handler: serve})
}

// form is the content of a file in a content coding, such as gzip; the coding is empty for the content as it is.
type form struct {
	coding  string
	content []byte
	// The hash of the content, so a browser that has the file gets 304.
	tag string
}

// The tag is the start of the content's SHA-256. It is computed once, since the content never changes while the
// gateway runs.
func newForm(coding string, content []byte) form {
	sum := sha256.Sum256(content)
	return form{coding, content, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// choose returns the form for a client by its Accept-Encoding headers. The order of the forms decides and not the
// weights of the client: Brotli is smaller than gzip.
func (f *file) choose(accept []string) (form, error) {
	i := slices.IndexFunc(f.forms, func(o form) bool { return o.coding == "" || accepts(accept, o.coding) })
	if i >= 0 {
		return f.forms[i], nil
	}
	// Only programs accept no coding, so the decompressed content isn't kept.
	z, err := gzip.NewReader(bytes.NewReader(f.forms[len(f.forms)-1].content))
	if err != nil {
		return form{}, fmt.Errorf("decompress: %w", err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		return form{}, fmt.Errorf("decompress: %w", err)
	}
	return newForm("", content), nil
}

// accepts reports whether Accept-Encoding headers name a coding, and don't refuse it with the weight 0 (RFC 9110, section 12.5.3).
func accepts(headers []string, coding string) bool {
	for _, h := range headers {
		for item := range strings.SplitSeq(h, ",") {
			name, weight, hasWeight := strings.Cut(item, ";")
			if !strings.EqualFold(strings.TrimSpace(name), coding) {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return !hasWeight || err == nil && q > 0
		}
	}
	return false
}

// registerDetector adds the speech detector below /ui/vad/: the document of a frame, and the two files that the page passes to it.
//
// The detector is WebAssembly, which the policy of the page forbids. So it runs in a frame with a separate policy: one script, identified
// by its hash, may compile WebAssembly. The sandbox removes the frame's origin, so the script has access neither to the page nor to the
// user's cookie, and default-src forbids all connections.
func registerDetector(s *server.Server, a *vad.Archive) {
	framePolicy := "default-src 'none'; script-src 'sha256-" + digest(a.Script) + "' 'wasm-unsafe-eval'; " +
		"sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	document := bytes.Join([][]byte{[]byte(`<!doctype html><meta charset="utf-8"><title>Speech detector</title><script>`), a.Script, []byte("</script>\n")}, nil)
	register(s, "/ui/vad/detector.html", file{contentType: types[".html"], policy: framePolicy, forms: []form{newForm("", document)}, isFramed: true})
	register(s, "/ui/vad/runtime.wasm", file{contentType: "application/wasm", policy: policy, forms: []form{newForm("gzip", a.Runtime)}})
	register(s, "/ui/vad/model.onnx", file{contentType: "application/octet-stream", policy: policy, forms: []form{newForm("gzip", a.Model)}})
}
