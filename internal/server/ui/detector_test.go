package ui_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/voice/vad"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The detector's frame has a separate policy, in which only its script may run. The page's policy is the same without a detector.
func TestDetector(t *testing.T) {
	without := serve(t, server.Options{}, nil).URL
	with := serve(t, server.Options{}, &vad.Archive{Script: []byte("run()"), Runtime: packed(t, "\x00asm"), Model: packed(t, "weights")}).URL
	policyOf := func(url string) string {
		res, _ := get(t, url)
		return res.Header.Get("Content-Security-Policy")
	}
	if before, after := policyOf(without+"/"), policyOf(with+"/"); after != before || !strings.Contains(before, "; frame-src 'self';") {
		t.Errorf("the page's policy is %q, and %q without a detector", after, before)
	}
	res, body := get(t, with+"/ui/vad/detector.html")
	// The hash is that of printf 'run()' | openssl dgst -sha256 -binary | base64.
	want := "default-src 'none'; script-src 'sha256-AvyuiL0SD1mVY3NNxR+V2uo+lhk6RMFrytWmRt6CrJQ=' 'wasm-unsafe-eval'; sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	if got := res.Header.Get("Content-Security-Policy"); got != want {
		t.Errorf("the frame's policy is %q", got)
	}
	if res.Header.Get("X-Frame-Options") != "SAMEORIGIN" || !strings.Contains(body, "<script>run()</script>") {
		t.Errorf("%v\n%s", res.Header, body)
	}
	for _, file := range []struct{ path, kind, content string }{
		{"/ui/vad/runtime.wasm", "application/wasm", "\x00asm"},
		{"/ui/vad/model.onnx", "application/octet-stream", "weights"},
	} {
		res, body := get(t, with+file.path) // the client unpacks it
		if res.Header.Get("Content-Type") != file.kind || body != file.content || !res.Uncompressed {
			t.Errorf("%s: %q, %v", file.path, body, res.Header)
		}
		if res, _ := get(t, with+file.path, "If-None-Match", res.Header.Get("ETag")); res.StatusCode != http.StatusNotModified {
			t.Errorf("%s: sent again, status %d", file.path, res.StatusCode)
		}
	}
	for _, path := range []string{with + "/ui/vad/", with + "/ui/vad/manifest.json", with + "/ui/vad/..%2f..%2fetc%2fpasswd", without + "/ui/vad/detector.html", without + "/ui/vad/model.onnx"} {
		if res, _ := get(t, path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
	}
}
