package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/voice/vad"
)

// registerDetector adds the speech detector below /ui/vad/: the document of a frame, and the two files that the page passes to it.
//
// The detector is WebAssembly, which the policy of the page forbids. So it runs in a frame with a separate policy: one script, identified
// by its hash, may compile WebAssembly. The sandbox removes the frame's origin, so the script has access neither to the page nor to the
// user's cookie, and default-src forbids all connections.
func registerDetector(s *server.Server, a *vad.Archive) {
	sum := sha256.Sum256(a.Script)
	framePolicy := "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "' 'wasm-unsafe-eval'; " +
		"sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	document := bytes.Join([][]byte{[]byte(`<!doctype html><meta charset="utf-8"><title>Speech detector</title><script>`), a.Script, []byte("</script>\n")}, nil)
	register(s, "/ui/vad/detector.html", file{contentType: types[".html"], policy: framePolicy, content: document, isFramed: true})
	// Every browser with WebAssembly accepts gzip.
	register(s, "/ui/vad/runtime.wasm", file{contentType: "application/wasm", policy: policy, content: a.Runtime, encoding: "gzip"})
	register(s, "/ui/vad/model.onnx", file{contentType: "application/octet-stream", policy: policy, content: a.Model, encoding: "gzip"})
}
