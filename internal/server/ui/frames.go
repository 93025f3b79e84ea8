package ui

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io/fs"
	"path"
	"strings"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/web"
)

// The scripts are inline in their documents. The policies of the diagram's and the worker's document allow theirs by its
// hash. That of an app allows all inline scripts, because the HTML of tools has more.
var (
	//go:embed frames/diagram.js
	diagramScript []byte
	//go:embed frames/app.js
	appScript []byte
	//go:embed frames/worker.js
	workerScript []byte
)

// framed is the part of the policies of all frames: no origin, no connections, no navigation by links or forms, and only the page shows
// them. Each adds what its document needs.
const framed = "default-src 'none'; sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "

// registerFrames adds the documents of the page's sandboxed frames below /ui/frames/. Their content comes from agents and tools: the
// source of diagrams, and HTML. The policy is in the header of the document, so it applies also without the page.
func registerFrames(s *server.Server) {
	// Mermaid sets style attributes, and creates a style element in each picture.
	document := join(`<!doctype html><meta charset="utf-8"><title>Diagram</title><style>body{margin:0}svg{display:block;max-width:100%;margin:auto}</style><div id="drawing"></div><script src="../`,
		mermaid(), `"></script><script>`, string(diagramScript), "</script>\n")
	policy := framed + "script-src 'self' 'sha256-" + digest(diagramScript) + "'; style-src 'unsafe-inline'; img-src data:"
	register(s, "/ui/frames/diagram.html", file{contentType: types[".html"], policy: policy, forms: []form{newForm("", document)}, isFramed: true})
	// An app has inline scripts and styles, and can load nothing.
	document = join(`<!doctype html><meta charset="utf-8"><title>App</title><script>`, string(appScript), "</script>\n")
	policy = framed + "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; font-src data:"
	register(s, "/ui/frames/app.html", file{contentType: types[".html"], policy: policy, forms: []form{newForm("", document)}, isFramed: true})
}

// registerWorkerFrame adds the document that registers the service worker of notifications. To browsers, the address of a worker is like
// a script from a string, which the page's policy forbids (require-trusted-types-for). So a frame of the same origin registers it. The
// frame may run this script and workers of the gateway, and nothing else.
func registerWorkerFrame(s *server.Server) {
	document := join(`<!doctype html><meta charset="utf-8"><title>Notifications</title><script>`, string(workerScript), "</script>\n")
	policy := "default-src 'none'; script-src 'sha256-" + digest(workerScript) + "'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	register(s, "/ui/frames/worker.html", file{contentType: types[".html"], policy: policy, forms: []form{newForm("", document)}, isFramed: true})
}

// mermaid returns the name of Mermaid's script, which contains the hash of its content.
func mermaid() string {
	names, err := fs.Glob(web.Dist, "dist/ui/mermaid-*.js.br")
	if err != nil || len(names) != 1 {
		panic("ui: the page's files contain no single script of Mermaid") // they are embedded
	}
	return strings.TrimSuffix(path.Base(names[0]), ".br")
}

func join(parts ...string) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString(p)
	}
	return b.Bytes()
}

// digest returns the source expression of a script in a policy, without its prefix: the SHA-256 in base64. It must be
// that of the exact bytes between the script tags, or browsers refuse to run the script.
func digest(script []byte) string {
	sum := sha256.Sum256(script)
	return base64.StdEncoding.EncodeToString(sum[:])
}
