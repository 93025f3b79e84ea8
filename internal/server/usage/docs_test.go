package usage_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	surface "github.com/leat-dev/leat/internal/server/usage"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// blocks returns the examples of a document in a language.
func blocks(t *testing.T, doc, language string) []string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/" + doc)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no example in %s", doc, language)
	}
	return all
}

// The examples of docs/limits.md and docs/usage.md that call a gateway have the results that the pages describe.
func TestDocExamples(t *testing.T) {
	for _, tool := range []string{"curl", "bash", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed: apt-get install %s", tool, tool)
		}
	}
	gw, err := gateway.New(gateway.Config{
		Journal: memory.New(), Agents: gateway.Agents{"a": {Agent: spender{}}}, DefaultAgent: "a", Quotas: gateway.Quotas{User: quota.Limits{Messages: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: token})
	surface.Register(srv, gw)
	native.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	ts := httptest.NewServer(srv)
	defer func() {
		srv.Close()
		ts.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for _, doc := range []string{"limits.md", "usage.md"} {
		for _, text := range blocks(t, doc, "sh") {
			if !strings.Contains(text, "curl") {
				continue // of the program; its scripts run those
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			cmd := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\n"+text)
			cmd.Env = append(os.Environ(), "LEAT="+ts.URL, "LEAT_API_TOKEN="+token, "no_proxy=*")
			out, err := cmd.CombinedOutput()
			cancel()
			if err != nil {
				t.Fatalf("%s: %v\n%s", doc, err, out)
			}
			want := []string{`"state":"started"`, `"reason":"rate_limited"`, `"rejected":true`, `"retryAfter":`}
			if doc == "usage.md" {
				want = []string{`"timezone":"UTC"`, `"subject":"ann"`, "day,turns,completed"}
			}
			for _, w := range want {
				if !strings.Contains(string(out), w) {
					t.Errorf("%s: the example's output has no %s:\n%s", doc, w, out)
				}
			}
		}
	}
}

// The configuration examples of both pages are valid.
func TestDocConfigurations(t *testing.T) {
	for _, doc := range []string{"limits.md", "usage.md"} {
		for _, text := range blocks(t, doc, "yaml") {
			c := config.Default()
			if err := c.Parse("leat.yaml", []byte(text)); err != nil {
				t.Errorf("%s: %v\n%s", doc, err, text)
			}
			if doc == "limits.md" && c.Limits.Tenant.Bytes != 50<<30 || doc == "usage.md" && len(c.Prices) != 3 {
				t.Errorf("%s: it says %+v, %+v", doc, c.Limits, c.Prices)
			}
		}
	}
}
