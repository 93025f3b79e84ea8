package cli

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// leat import lists the sessions of an agent's upstream and creates a conversation that continues one.
func TestImportSessions(t *testing.T) {
	up := &agenttest.Follower{}
	up.AddEntries("s1", agenttest.MessageEntry("m1", "tui", "hello", time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)))
	up.AddEntries("s2", agenttest.MessageEntry("m1", "tui", "before", time.Time{}))
	gw, err := gateway.New(gateway.Config{Journal: memory.New(), Agents: gateway.Agents{"a": {Agent: up}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: "secret-token-of-the-operator", Log: slog.New(slog.DiscardHandler)})
	native.Register(srv, gw)
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	})
	run := func(args ...string) (status int, out, errs string) {
		var o, e bytes.Buffer
		a := &app{ctx: t.Context(), in: strings.NewReader(""), stdout: &o, stderr: &e, lookup: func(string) (string, bool) { return "", false }}
		status = a.run(append([]string{"import", "--url", ts.URL, "--token", "secret-token-of-the-operator"}, args...))
		return status, o.String(), e.String()
	}
	if status, out, errs := run("--agent", "a", "--list"); status != 0 || !strings.Contains(out, "s1") || !strings.Contains(out, "Session s2") {
		t.Errorf("list: %d, %s%s", status, out, errs)
	}
	owner := gateway.Principal{Tenant: "t1", Subject: "alice"}
	messages := func(args ...string) (n int) {
		t.Helper()
		status, out, errs := run(append(args, "--agent", "a", "--owner", "alice", "--tenant", "t1")...)
		if status != 0 {
			t.Fatalf("import: %d, %s", status, errs)
		}
		err := gw.ViewTranscript(t.Context(), owner, strings.TrimSpace(out), func(tr *transcript.Transcript) bool {
			n = len(tr.Messages)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := messages("--session", "s1"); n != 1 {
		t.Errorf("%d messages with the history, want 1", n)
	}
	if n := messages("--session", "s2", "--no-history"); n != 0 {
		t.Errorf("%d messages without the history, want none", n)
	}
	for want, args := range map[string][]string{
		"continues this session already": {"--agent", "a", "--session", "s1"},
		"no such session":                {"--agent", "a", "--session", "s3"},
		"no agent is named":              {"--agent", "b", "--list"},
		"--list or --session":            {"--agent", "a"},
		"name an export":                 {},
		"--agent NAME is required":       {"--list"},
		"either an export":               {"--agent", "a", "--list", "file"},
	} {
		if status, _, errs := run(args...); status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d, %q; want %q", args, status, errs, want)
		}
	}
}
