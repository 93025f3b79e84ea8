package native_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/sse"
)

func readDoc(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocExamples runs the examples of docs/protocol.md.
func TestDocExamples(t *testing.T) {
	for _, tool := range []string{"curl", "bash", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed: apt-get install %s", tool, tool)
		}
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readDoc(t), -1) {
		script.WriteString(strings.ReplaceAll(m[1], "--max-time 5", "--max-time 1"))
		script.WriteString("\necho\n")
	}
	gw, turns, pushes := newInspected(t, options{})
	srv := server.New(server.Options{Token: token})
	native.Register(srv, gw)
	native.RegisterInspection(srv, turns)
	native.RegisterIngest(srv, gw, pushes)
	eliza.Register(srv, gw, eliza.Options{})
	ops.Register(srv, gw, prometheus.NewRegistry(), nil)
	ts := httptest.NewServer(srv)
	defer func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Env = append(os.Environ(), "LEAT="+ts.URL, "LEAT_API_TOKEN="+token, "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`"state":"started"`, `"type":"hello"`, `"reset":true`, `you said: 2+2`, `"repeated":true`, `"outcome":"completed"`, `"eliza-actions"`, `"default":true`, `"ready"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the examples' output has no %s:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), `"error"`) {
		t.Errorf("an example fails:\n%s", out)
	}
}

// The table of errors in docs/protocol.md has exactly the reasons that a client can get.
func TestDocReasons(t *testing.T) {
	doc := readDoc(t)
	_, table, ok := strings.Cut(doc, "## 12. Errors")
	if !ok {
		t.Fatal("no table of errors")
	}
	known := map[string]bool{}
	for _, reason := range []string{
		server.ReasonUnauthorized, server.ReasonExpired, server.ReasonAttempts, server.ReasonForbidden, server.ReasonNotFound, server.ReasonMethod, server.ReasonExists, server.ReasonInvalid,
		server.ReasonTooLarge, server.ReasonTurnOver, server.ReasonUnavailable, server.ReasonStream, server.ReasonTimeout, server.ReasonInternal,
		server.ReasonBusy, gateway.ReasonConflict, gateway.ReasonUnknownAgent, gateway.ReasonUnknown, gateway.ReasonUnfinished, gateway.ReasonFull,
		gateway.ReasonAnswered, gateway.ReasonDraining, gateway.ReasonDeleted, gateway.ReasonTooLarge, gateway.ReasonDialect,
		gateway.ReasonRateLimited, gateway.ReasonQuota, gateway.ReasonUpstream, server.ReasonDamaged,
	} {
		known[reason] = true
		if !strings.Contains(table, "`"+reason+"`") {
			t.Errorf("the reason %s is not in the table", reason)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ \| (.*?) \|`).FindAllStringSubmatch(table, -1) {
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			if !known[m[1]] {
				t.Errorf("the table has a reason %s that no error has", m[1])
			}
		}
	}
}

// The table of limits in docs/protocol.md has the values of the code.
func TestDocLimits(t *testing.T) {
	_, table, ok := strings.Cut(readDoc(t), "## 11. Limits")
	if !ok {
		t.Fatal("no table of limits")
	}
	table, _, _ = strings.Cut(table, "## 12.")
	for _, want := range []string{
		fmt.Sprintf("head | %d KiB", server.MaxHeader>>10),
		fmt.Sprintf("| %d MiB; %d MiB |", server.DefaultMaxBody>>20, native.MaxCommand>>20),
		fmt.Sprintf("| %.0f s | 400", server.DefaultBodyTimeout.Seconds()),
		fmt.Sprintf("text and data | %d MiB", gateway.DefaultMaxMessage>>20),
		fmt.Sprintf("| %d bytes, no control", event.MaxID),
		fmt.Sprintf("conversation | %d |", gateway.DefaultMaxQueued),
		fmt.Sprintf("stream | %d MiB", sse.MaxLine>>20),
		fmt.Sprintf("a token | %d KiB", server.MaxToken>>10),
		fmt.Sprintf("subscriptions of a socket | %d", native.MaxSubscriptions),
		fmt.Sprintf("their answer | %d |", native.MaxPending),
		fmt.Sprintf("nothing | %.0f minutes", server.DefaultStall.Minutes()),
		fmt.Sprintf("connections | %d,000", server.DefaultMaxConnections/1000),
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table of limits has no %q", want)
		}
	}
}
