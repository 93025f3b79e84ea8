package files_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// A MEDIA: line or an upload's address in a user's message becomes a file part whose bytes the agent gets.
func TestMediaLines(t *testing.T) {
	got := make(chan agent.Input, 1)
	read := make(chan string, 1)
	s := newSite(t, func(c *gateway.Config) {
		c.Agents = gateway.Agents{"a": {Agent: agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			for _, p := range in.Message.Parts {
				if p.Media != nil && p.Media.URL != "" {
					f, err := out.OpenFile(ctx, *p.Media)
					if err != nil {
						return err
					}
					b, _ := io.ReadAll(f)
					_ = f.Close()
					read <- string(b) + " at " + out.FilePath(ctx, *p.Media)
				}
			}
			got <- in
			return nil
		})}}
	})
	res, b := s.call("alice", http.MethodPost, "/api/files/upload?name=x.txt", strings.NewReader("hers"))
	s.want(http.StatusCreated, res, b)
	u := decode(t, b)
	for _, as := range []string{"alice", "bob"} {
		s.conversation(as, "of-"+as)
		for _, message := range []map[string]any{
			{"text": "Look!\nMEDIA:" + u.Path + "\nNice?"},
			{"text": "Look!\nNice?", "parts": []any{map[string]any{"kind": "media", "media": u.Media}}},
		} {
			body, _ := json.Marshal(map[string]any{"type": "send", "message": message})
			res, b := s.call(as, http.MethodPost, "/api/conversations/of-"+as+"/commands", bytes.NewReader(body))
			s.want(http.StatusOK, res, b)
			if as == "alice" {
				if text := <-read; text != "hers at "+u.Path {
					t.Errorf("the agent reads %q", text)
				}
			}
			in := <-got
			if in.Message.Text != "Look!\nNice?" || len(in.Message.Parts) == 0 {
				t.Fatalf("%+v", in.Message)
			}
			m := in.Message.Parts[len(in.Message.Parts)-1].Media
			if as == "bob" && (m.URL != "" || m.Name != "x.txt") {
				t.Errorf("bob's agent gets %+v", m)
			}
		}
		_, b = s.call(as, http.MethodGet, "/api/conversations/of-"+as+"/transcript", nil)
		if n := strings.Count(string(b), `"code":"file_unavailable"`); n != map[string]int{"alice": 0, "bob": 2}[as] || strings.Contains(string(b), s.workspace) {
			t.Errorf("%s: %d errors in %s", as, n, b)
		}
	}
}

type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

// A file that an agent shows by its path is copied into the conversation. A path that it may not show becomes a part with the
// refusal, which reveals nothing about the file.
func TestAgentPaths(t *testing.T) {
	var show []string
	s := newSite(t, func(c *gateway.Config) {
		c.Agents = gateway.Agents{"a": {Agent: agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			for _, at := range show {
				if err := out.Media(event.Media{URL: at}); err != nil {
					return err
				}
			}
			return nil
		})}}
	})
	secret := filepath.Join(s.dir, "secret.txt")
	for name, text := range map[string]string{secret: "the secret", filepath.Join(s.workspace, "plot.txt"): "the plot"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink(secret, filepath.Join(s.workspace, "link")) // else it is not there
	_ = os.Symlink("..", filepath.Join(s.workspace, "up"))
	paths := map[string]string{}
	for _, as := range []string{"alice", "bob"} {
		res, b := s.call(as, http.MethodPost, "/api/files/upload?name="+as+".txt", strings.NewReader(as+"'s"))
		s.want(http.StatusCreated, res, b)
		paths[as] = decode(t, b).Path
	}
	good := []string{"./plot.txt", s.workspace + "/plot.txt", "file://" + s.workspace + "/plot.txt", paths["alice"]}
	var bad []string
	for _, at := range append([]string{paths["bob"], "./none.txt"}, hostile(s, secret)...) {
		if strings.HasPrefix(at, "/") || strings.HasPrefix(at, ".") || strings.HasPrefix(at, "~") || strings.HasPrefix(at, "file://") {
			if !strings.HasPrefix(at, "..%") && !strings.HasPrefix(at, `..\`) && !strings.HasPrefix(at, "....") { // the gateway treats these as file names, not as paths
				bad = append(bad, at)
			}
		}
	}
	show = append(append([]string{}, good...), bad...)
	s.conversation("alice", "c")
	res, b := s.call("alice", http.MethodPost, "/api/conversations/c/commands", strings.NewReader(`{"type":"send","message":{"text":"show"}}`))
	s.want(http.StatusOK, res, b)
	type shown struct {
		Transcript struct {
			Messages []struct {
				Parts []struct {
					Media *event.Media
					Error *event.Error
				}
			}
			Turns []struct{ State string }
		}
	}
	var tr shown
	for deadline := time.Now().Add(30 * time.Second); len(tr.Transcript.Turns) == 0 || tr.Transcript.Turns[0].State != "ended"; {
		if time.Now().After(deadline) {
			t.Fatal("the turn does not end")
		}
		_, b = s.call("alice", http.MethodGet, "/api/conversations/c/transcript", nil)
		if err := json.Unmarshal(b, &tr); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(string(b), s.dir) || strings.Contains(string(b), "/etc") {
		t.Errorf("the log reveals paths of the machine: %s", b)
	}
	parts := tr.Transcript.Messages[1].Parts
	if len(parts) != len(show) {
		t.Fatalf("%d parts, want %d: %s", len(parts), len(show), b)
	}
	want := []string{"the plot", "the plot", "the plot", "alice's"}
	for i, p := range parts {
		if i >= len(good) {
			if p.Error == nil || p.Error.Code != "file_unavailable" || p.Media.URL != "" {
				t.Errorf("%q: %+v, %+v", show[i], p.Media, p.Error)
			}
			continue
		}
		if p.Error != nil || !strings.HasPrefix(p.Media.URL, "/api/conversations/c/files/") {
			t.Fatalf("%q: %+v, %+v", show[i], p.Media, p.Error)
		}
		if _, b := s.call("alice", http.MethodGet, p.Media.URL, nil); string(b) != want[i] {
			t.Errorf("%q reads %q", show[i], b)
		}
	}
}
