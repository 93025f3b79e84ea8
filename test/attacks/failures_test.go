package attacks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Texts of failed turns that only operators may see.
const (
	internalAddress = "127.0.0.1:9"
	lastLine        = "cannot open /srv/internal/ledger.db"
	printedSecret   = "sk-printed-0123456789abcdef"
)

// TestFailuresOfAgents fails turns by an agent whose address is internal and by a program that prints on its standard error.
// Readers get the kind of failure; the text goes to the log, the overview and the explanation of the turn, without secrets.
func TestFailuresOfAgents(t *testing.T) {
	script := filepath.Join(t.TempDir(), "agent.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho '"+lastLine+" with "+printedSecret+"' >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := startWith(filepath.Join(t.TempDir(), "data"), []string{"--agent", "dead=http:http://" + internalAddress + "/hook", "--agent", "script=exec:" + script}, "LEAT_API_TOKEN="+token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
	alice := as("t1", "alice")
	for name, c := range map[string]struct{ agent, kind, text string }{
		"unreachable": {"dead", "the agent can't be reached: connection refused", internalAddress},
		"program":     {"script", "the agent's process ended with exit status 3", lastLine},
	} {
		t.Run(name, func(t *testing.T) {
			id := conversationOf(t, h.raw(t, request("POST", "/api/conversations", `{"agent":"`+c.agent+`"}`, alice...)))
			a := h.raw(t, request("POST", "/api/conversations/"+id+"/commands", `{"type":"send","message":{"text":"go"}}`, alice...))
			var ack struct {
				Turn string `json:"turn"`
			}
			if err := json.Unmarshal([]byte(a.body), &ack); err != nil || ack.Turn == "" {
				t.Fatalf("%s %v", a.body, err)
			}
			var seen string
			for begin := time.Now(); !strings.Contains(seen, `"failed"`); { // another process: it is asked until the turn has ended
				if time.Since(begin) > limit {
					t.Fatalf("the turn does not end: %s", seen)
				}
				seen = h.raw(t, request("GET", "/api/turns/"+ack.Turn, "", alice...)).body
			}
			for _, path := range []string{"/transcript", "/messages"} {
				seen += h.raw(t, request("GET", "/api/conversations/"+id+path, "", alice...)).body
			}
			if !strings.Contains(seen, c.kind) {
				t.Errorf("readers do not get %q: %s", c.kind, seen)
			}
			if strings.Contains(seen, c.text) || strings.Contains(seen, printedSecret) {
				t.Errorf("readers get %q: %s", c.text, seen)
			}
			overview := h.raw(t, request("GET", "/api/overview", "")).body
			explanation := h.raw(t, request("GET", "/api/turns/"+ack.Turn+"/explain", "")).body
			for what, text := range map[string]string{"overview": overview, "explanation": explanation, "log": h.logs.String()} {
				if !strings.Contains(text, c.text) {
					t.Errorf("operators do not find %q in the %s: %.2000s", c.text, what, text)
				}
				if strings.Contains(text, printedSecret) {
					t.Errorf("the %s holds a secret", what)
				}
			}
		})
	}
}
