package openclaw

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
)

// showFile plays a run that shows the file path; block is the file's block in the history.
func showFile(path string, block map[string]any) func(*fakeRun) {
	return func(r *fakeRun) {
		if path != "" {
			r.agent("assistant", map[string]any{"text": "", "delta": "", "mediaUrls": []string{path}, "itemId": r.id + ":1"})
		}
		r.speak("1", "Here.")
		row := textContent("Here.")
		row["role"], row["stopReason"] = "assistant", "stop"
		if block != nil {
			row["content"] = append(row["content"].([]any), block)
		}
		r.addRows(row)
		r.end("final", map[string]any{"message": textContent("Here.")})
	}
}

func TestMedia(t *testing.T) {
	const path = "/srv/claw/ws/pic.png"
	b64 := base64.StdEncoding.EncodeToString([]byte("picture"))
	artifact := map[string]any{"type": "image", "artifactId": "art-1", "url": "/api/chat/media/outgoing/x/1/full", "alt": "pic.png", "mimeType": "image/png"}
	serveFile := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+fakeToken || r.URL.Path != artifact["url"] {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("picture")) // the client may have disconnected
	}
	notFound := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	for _, tt := range []struct {
		name   string
		path   string
		block  map[string]any
		media  http.HandlerFunc
		art    string
		root   bool
		reason string // the error in the part; empty if the file is fetched
	}{
		{"by its address", path, artifact, serveFile, "", false, ""},
		{"as an artifact", path, artifact, notFound, b64, false, ""},
		{"from a shared disk", path, nil, notFound, "", true, ""},
		{"in the history alone", "", artifact, serveFile, "", false, ""},
		{"as base64 of the history", "", map[string]any{"type": "image", "data": b64, "mimeType": "image/png", "alt": "pic.png"}, notFound, "", false, ""},
		{"nowhere", path, nil, notFound, "", false, "could not be fetched"},
		{"not stored there", path, map[string]any{"type": "attachment_error", "attachment": map[string]any{"code": "delivery-failed", "label": "pic.png"}}, notFound, "", false, "could not be fetched"},
		{"refused", path, artifact, notFound, "", false, "could not be fetched"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "ws"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "ws", "pic.png"), []byte("picture"), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, 4, showFile(tt.path, tt.block))
				defer f.stop()
				f.media = tt.media
				if tt.art != "" {
					f.artifacts["art-1"] = tt.art
				}
				a := newAgent(t, f, func(c *config) {
					if tt.root {
						c.MediaRoot = root
					}
				})
				defer a.Close()
				h := newTurnHost(t, "hello")
				if err := h.runUntil(t.Context(), a, nil); err != nil {
					t.Fatal(err)
				}
				h.checkTurn(t, event.Completed, "Here.")
				parts := h.parts(event.KindMedia)
				if len(parts) != 1 || parts[0].Media.Name != "pic.png" {
					t.Fatalf("parts: %+v", parts)
				}
				p := parts[0]
				if tt.reason != "" {
					if p.Error == nil || !strings.Contains(p.Error.Message, tt.reason) || p.Media.URL != "" || !strings.Contains(p.Media.Alt, "pic.png") {
						t.Errorf("it shows %+v, %+v", p.Media, p.Error)
					}
					return
				}
				if string(h.bytes[p.Media.URL]) != "picture" {
					t.Errorf("it shows %+v, %+v", p.Media, p.Error)
				}
			})
		})
	}
}

// A download that stalls doesn't delay the end of a run that ended while Leat was disconnected.
func TestStalledFile(t *testing.T) {
	artifact := map[string]any{"type": "image", "url": "/api/chat/media/outgoing/x/1/full", "alt": "pic.png", "mimeType": "image/png"}
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "He")
		r.wait(2 * time.Second)
		showFile("", artifact)(r)
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		f.media = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		h := newTurnHost(t, "hello")
		die := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(die) })
		_ = h.runUntil(t.Context(), a, die)
		a.Close()
		time.Sleep(10 * time.Second)
		b := newAgent(t, f, nil)
		defer b.Close()
		begin := time.Now()
		if err := h.runUntil(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Here.")
		if took := time.Since(begin); took > 2*completeLimit {
			t.Errorf("it took %v", took)
		}
		if parts := h.parts(event.KindMedia); len(parts) != 1 || parts[0].Error == nil || parts[0].Error.Code != codeFile {
			t.Errorf("parts: %+v", parts)
		}
	})
}

func TestAttachments(t *testing.T) {
	play := func(r *fakeRun) {
		list, _ := json.Marshal(r.params["attachments"])
		r.final("1", string(list))
	}
	for _, tt := range []struct {
		name  string
		size  int
		where string
		want  string
		code  string
	}{
		{"one that fits", 3, "/api/files/a.png", `[{"content":"eHh4","fileName":"a.png","mimeType":"image/png","type":"image"}]`, ""},
		{"one that is too large", 2000, "/api/files/a.png", "", codeAttachment},
		{"one that is nowhere", 3, "/api/files/other.png", "", codeAttachment},
	} {
		bubble(t, 4, play, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "look")
			h.bytes["/api/files/a.png"] = []byte(strings.Repeat("x", tt.size))
			h.in.Message.Parts = []event.Part{{Kind: event.KindMedia, Media: &event.Media{URL: tt.where, MIME: "image/png", Name: "a.png"}}}
			_ = h.runUntil(t.Context(), a, nil)
			if tt.code != "" {
				h.checkFailure(t, tt.code, "a.png")
				return
			}
			h.checkTurn(t, event.Completed, tt.want)
		})
	}
}

// A file in the workspace is stored without reading OpenClaw's history; a missing one has an error in its part.
func TestWorkspaceFile(t *testing.T) {
	for path, reason := range map[string]string{"/space/pic.png": "", "/elsewhere/pic.png": "could not be fetched"} {
		bubble(t, 4, showFile(path, nil), func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			h.workspace = map[string]string{"/space/pic.png": "picture"}
			if err := h.runUntil(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			h.checkTurn(t, event.Completed, "Here.")
			parts := h.parts(event.KindMedia)
			if len(parts) != 1 || parts[0].Media.Name != "pic.png" || strings.Contains(parts[0].Media.URL, "space") {
				t.Fatalf("parts: %+v", parts)
			}
			if p := parts[0]; reason != "" && (p.Error == nil || !strings.Contains(p.Error.Message, reason) || p.Media.URL != "") || reason == "" && string(h.bytes[p.Media.URL]) != "picture" {
				t.Errorf("%s: %+v, %+v", path, p.Media, p.Error)
			}
		})
	}
}

// A file that is too large for an attachment is sent as its path, if it has one.
func TestLargeAttachmentByPath(t *testing.T) {
	play := func(r *fakeRun) {
		text, _ := r.params["message"].(string)
		r.final("1", text)
	}
	bubble(t, 4, play, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "look")
		h.workspace = map[string]string{}
		h.bytes["/api/files/a.png"] = []byte(strings.Repeat("x", 2000))
		h.in.Message.Parts = []event.Part{
			{Kind: event.KindMedia, Media: &event.Media{URL: "/api/files/a.png", MIME: "image/png", Name: "a.png"}},
			{Kind: event.KindMedia, Media: &event.Media{Name: "none.png"}}, // named by a path that doesn't exist
		}
		_ = h.runUntil(t.Context(), a, nil)
		h.checkTurn(t, event.Completed, "look\n\nMEDIA:/space/a.png")
	})
}
