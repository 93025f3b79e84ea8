package eliza

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
)

const waves = `[{"id":"wave","name":"Wave","description":"Waves a hand","file":"wave.glb","duration":2.0,"loop":false,"category":"greeting"},
 {"id":"dance","file":"dance.glb","duration":4.5,"loop":true}]`

// emoteDir creates a folder with a catalogue and files. Unless given, the content of a file is the start of a GLB file.
func emoteDir(t *testing.T, catalogue string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{EmotesFile: catalogue, "wave.glb": "glTF-wave", "dance.glb": "glTF-dance", "secret.glb": "glTF-secret", "text.glb": "text"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range files {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEmotes(t *testing.T) {
	all, err := LoadEmotes(emoteDir(t, waves, nil))
	if err != nil {
		t.Fatal(err)
	}
	var sent []hub.Frame
	srv := server.New(server.Options{Token: secret})
	defer srv.Close()
	RegisterEmotes(srv, EmoteOptions{Emotes: all, Send: func(f hub.Frame) { sent = append(sent, f) }})
	ask := func(method, path, body string, headers ...string) *httptest.ResponseRecorder {
		h := &harness{t: t}
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, h.request(method, path, body, headers...))
		return rec
	}
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/api/emotes", "", 200, `{"emotes":[{"id":"wave","name":"Wave","description":"Waves a hand","glbPath":"/emotes/wave.glb","duration":2,"loop":false,"category":"greeting"},` +
			`{"id":"dance","name":"dance","description":"","glbPath":"/emotes/dance.glb","duration":4.5,"loop":true}]}`},
		{"POST", "/api/emote", `{"emoteId":"wave"}`, 200, `{"ok":true}`},
		{"POST", "/api/emote", `{"emoteId":"x"}`, 400, `{"error":"Unknown emote: x","reason":"invalid"}`},
		{"POST", "/api/emote", ``, 400, `{"error":"Unknown emote: ","reason":"invalid"}`},
		{"GET", "/emotes/wave.glb", "", 200, "glTF-wave"},
		{"GET", "/emotes/secret.glb", "", 404, `{"error":"emote not found","reason":"not_found"}`},
		{"GET", "/emotes/emotes.json", "", 404, `{"error":"emote not found","reason":"not_found"}`},
		{"GET", "/emotes/..%2f..%2fetc%2fpasswd", "", 404, `{"error":"emote not found","reason":"not_found"}`},
	} {
		rec := ask(tt.method, tt.path, tt.body)
		if got := strings.TrimSpace(rec.Body.String()); rec.Code != tt.status || got != tt.want {
			t.Errorf("%s %s: %d %s\nwant %d %s", tt.method, tt.path, rec.Code, got, tt.status, tt.want)
		}
	}
	ask("POST", "/api/emote", `{"emoteId":"dance"}`, server.HeaderSubject, "ann", server.HeaderTenant, "t")
	if d := cmp.Diff([]hub.Frame{
		{Broadcast: true, JSON: []byte(`{"type":"emote","emoteId":"wave","glbPath":"/emotes/wave.glb","duration":2,"loop":false}`)},
		{Private: true, Tenant: "t", Subject: "ann", JSON: []byte(`{"type":"emote","emoteId":"dance","glbPath":"/emotes/dance.glb","duration":4.5,"loop":true}`)},
	}, sent); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	rec := ask("GET", "/emotes/wave.glb", "", "Range", "bytes=0-3")
	if rec.Code != http.StatusPartialContent || rec.Body.String() != "glTF" || rec.Header().Get("Content-Type") != "model/gltf-binary" {
		t.Errorf("a part: %d %s %v", rec.Code, rec.Body, rec.Header())
	}
	rec = ask("GET", "/emotes/wave.glb", "", "If-Modified-Since", rec.Header().Get("Last-Modified"))
	if rec.Code != http.StatusNotModified {
		t.Errorf("again: %d", rec.Code)
	}
}

// The example catalogue can be loaded. Its file is a valid GLB file whose animation is as long as the catalogue claims.
func TestExampleEmotes(t *testing.T) {
	const dir = "../../../examples/emotes"
	all, err := LoadEmotes(dir)
	if err != nil {
		t.Fatal(err)
	}
	nod, ok := all.find("nod")
	if !ok {
		t.Fatal("it has no nod")
	}
	srv := server.New(server.Options{Token: secret})
	defer srv.Close()
	RegisterEmotes(srv, EmoteOptions{Emotes: all})
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost"+nod.Path, nil))
	b := rec.Body.Bytes()
	if rec.Code != http.StatusOK || len(b) < 20 {
		t.Fatalf("%d, %d bytes", rec.Code, len(b))
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	end := 20 + number(12)
	if number(4) != 2 || number(8) != len(b) || string(b[16:20]) != "JSON" || len(b) < end+8 || string(b[end+4:end+8]) != "BIN\x00" || end+8+number(end) != len(b) {
		t.Fatalf("%q", b)
	}
	var scene struct {
		Asset      struct{ Version string }
		Animations []struct {
			Samplers []struct{ Input int }
		}
		Accessors []struct{ Max []float64 }
		Buffers   []struct{ ByteLength int }
	}
	if err := json.Unmarshal(b[20:end], &scene); err != nil {
		t.Fatal(err)
	}
	if scene.Asset.Version != "2.0" || len(scene.Animations) != 1 || len(scene.Buffers) != 1 || scene.Buffers[0].ByteLength != number(end) {
		t.Fatalf("%+v", scene)
	}
	if took := scene.Accessors[scene.Animations[0].Samplers[0].Input].Max; len(took) != 1 || took[0] != nod.Duration {
		t.Errorf("it takes %v s, the catalogue says %v", took, nod.Duration)
	}
}

// Without a catalogue the list is empty.
func TestNoEmotes(t *testing.T) {
	srv := server.New(server.Options{Token: secret})
	defer srv.Close()
	RegisterEmotes(srv, EmoteOptions{})
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, (&harness{t: t}).request("GET", "/api/emotes", ""))
	if !json.Valid(rec.Body.Bytes()) || strings.TrimSpace(rec.Body.String()) != `{"emotes":[]}` {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestWrongCatalogues(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.glb")
	if err := os.WriteFile(outside, []byte("glTF"), 0o600); err != nil {
		t.Fatal(err)
	}
	for catalogue, want := range map[string]string{
		`{}`: "cannot unmarshal", `[{"id":"a","speed":1}]`: "unknown field",
		`[{"id":"","file":"wave.glb","duration":1}]`:                                            "missing id",
		`[{"id":"a","file":"wave.glb"}]`:                                                        "duration 0",
		`[{"id":"a","file":"wave.glb","duration":-1}]`:                                          "duration -1",
		`[{"id":"a","file":"../wave.glb","duration":1}]`:                                        "name of a GLB file",
		`[{"id":"a","file":"none.glb","duration":1}]`:                                           "no such file",
		`[{"id":"a","file":"text.glb","duration":1}]`:                                           "is not a GLB file",
		`[{"id":"a","file":"link.glb","duration":1}]`:                                           "escapes",
		`[{"id":"a","file":"wave.glb","glbPath":"/x","duration":1}]`:                            "glbPath is not allowed",
		`[{"id":"a","file":"wave.glb","duration":1},{"id":"a","file":"wave.glb","duration":1}]`: `duplicate id "a"`,
	} {
		_, err := LoadEmotes(emoteDir(t, catalogue, map[string]string{"link.glb": outside}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", catalogue, err, want)
		}
	}
	if _, err := LoadEmotes(t.TempDir()); err == nil || !strings.Contains(err.Error(), EmotesFile) {
		t.Errorf("an empty folder: %v", err)
	}
}
