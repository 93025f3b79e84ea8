package letta

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
)

// recorded lists recordings with several connections, and those whose stream has no end.
var recorded = []struct {
	pattern string
	client  string
	cut     bool
}{
	{pattern: "letta-v1/*.sse"},
	{pattern: "letta-v1/approval.sse", cut: true},
	{pattern: "letta-v1/local-backend-id-per-chunk.jsonl", cut: true},
	{pattern: "letta-appserver/0.31.12/*.jsonl"},
	{pattern: "letta-appserver/0.32.18/*.jsonl"},
	{pattern: "letta-appserver/0.32.18/reconnect.jsonl", cut: true},
	{pattern: "letta-appserver/0.32.18/reconnect.jsonl", client: "B", cut: true},
	{pattern: "letta-appserver/0.32.18/restart-SIGKILL.jsonl", cut: true},
	{pattern: "letta-appserver/0.32.18/restart-SIGKILL.jsonl", client: "B"},
	{pattern: "letta-appserver/0.32.18/twoviewers.jsonl", client: "B"},
	{pattern: "letta-appserver/headless/*.jsonl"},
}

type stream struct {
	dialecttest.Stream
	d dialect.Dialect
}

// streams returns all recordings, by name.
func streams(t *testing.T) map[string]stream {
	t.Helper()
	all := map[string]stream{}
	for _, r := range recorded {
		for _, path := range dialecttest.Glob(t, r.pattern) {
			d := Code()
			if strings.HasPrefix(r.pattern, "letta-v1") {
				d = Dialect()
			}
			s := dialecttest.Load(t, d, path, r.client)
			s.Name = filepath.Base(filepath.Dir(path)) + "-" + s.Name + r.client
			s.Unfinished = r.cut
			all[s.Name] = stream{s, d}
		}
	}
	return all
}

// TestGolden compares the transcript of each recording with its golden file.
func TestGolden(t *testing.T) {
	for _, s := range streams(t) {
		dialecttest.Golden(t, s.d, []dialecttest.Stream{s.Stream})
	}
}

// The decoder knows every frame of the recordings.
func TestNoUnknownFrames(t *testing.T) {
	for name, s := range streams(t) {
		st := dialect.NewStream(s.d)
		if _, err := st.Write(s.Body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := st.Unknown(); len(n) > 0 {
			t.Errorf("%s: unknown frames %v", name, n)
		}
	}
}

func TestRecordings(t *testing.T) {
	var v1, code []dialecttest.Stream
	for _, s := range streams(t) {
		if s.d.Name == nameV1 {
			v1 = append(v1, s.Stream)
		} else {
			code = append(code, s.Stream)
		}
	}
	dialecttest.Run(t, Dialect(), v1)
	dialecttest.Run(t, Code(), code)
}
