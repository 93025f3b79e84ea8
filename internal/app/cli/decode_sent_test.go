package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two sessions share a connection: frames of another session's run arrive before and between those of the client's own run.
func TestDecodeTwoSessions(t *testing.T) {
	lines := func(name string) []string {
		b, err := os.ReadFile(filepath.Join("../../../dialect/openclaw/testdata/2026.9.6", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.SplitAfter(strings.TrimSpace(string(b))+"\n", "\n")
	}
	for own, other := range map[string]string{"plain": "tool", "tool": "plain"} {
		var theirs []string // events of the other session
		for _, line := range lines(other) {
			var l struct {
				C     string `json:"c"`
				Frame struct {
					Event   string
					Payload struct{ RunID string }
				} `json:"frame"`
			}
			if line != "" && json.Unmarshal([]byte(line), &l) == nil && l.Frame.Payload.RunID != "" && l.Frame.Event != "" {
				theirs = append(theirs, line)
			}
		}
		var wire strings.Builder
		var alone strings.Builder
		for i, line := range lines(own) {
			alone.WriteString(line)
			if n := len(theirs); i >= 3 && n > 0 { // after the handshake
				k := min(2, n)
				wire.WriteString(strings.Join(theirs[:k], ""))
				theirs = theirs[k:]
			}
			wire.WriteString(line)
		}
		for _, args := range [][]string{nil, {"--client", "c1"}} {
			_, want, _ := leatHere(alone.String(), append([]string{"decode", "-d", "openclaw"}, args...)...)
			status, got, errs := leatHere(wire.String(), append([]string{"decode", "-d", "openclaw"}, args...)...)
			if status != 0 || got != want || want == "" {
				t.Errorf("%s next to %s, %v: status %d, %s\n%q, want\n%q", own, other, args, status, errs, got, want)
			}
		}
	}
}
