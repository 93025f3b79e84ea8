//go:build unix

package host_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/service/plugins"
)

// Installed agents join the others, and never take the place of a configured one, nor take one away that took theirs.
func TestNames(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	roster := gateway.NewRoster(quiet)
	defer roster.Close()
	configured := gateway.Agent{Agent: agentFunc(echo), Kind: "configured"}
	if err := roster.Add("a", configured); err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Config{Roster: roster, Dialect: leat.Dialect(), Journal: newJournal(t), Log: quiet})
	defer h.Close()
	p := plugins.Plugin{Dir: t.TempDir(), Manifest: plugins.Manifest{Name: "p", Kind: plugins.KindAgent, Command: []string{"cat"}}}
	for _, name := range []string{"a", gateway.PushAgent} {
		taken := p
		taken.Manifest.Name = name
		if err := h.Configure(taken); err == nil || !strings.Contains(err.Error(), "configured already") {
			t.Errorf("%s: %v", name, err)
		}
	}
	kind := func(name string) string {
		a, _ := roster.Agent(name, agent.Principal{})
		return a.Kind
	}
	if err := h.Resume(p); err != nil || kind("p") != "plugin" {
		t.Fatalf("%v; it is of kind %q", err, kind("p"))
	}
	if err := h.Configure(p); err != nil {
		t.Errorf("another version of it: %v", err)
	}
	// The configuration is loaded again, with an agent of that name.
	if err := roster.Replace("p", configured); err != nil {
		t.Fatal(err)
	}
	if err := h.Configure(p); err == nil {
		t.Error("another version would take the configured agent's place")
	}
	h.Stop("p")
	if kind("p") != "configured" {
		t.Error("its removal took the configured agent away")
	}
	// It becomes a channel, and an agent again.
	p.Manifest.Name = "q"
	for _, k := range []string{plugins.KindAgent, plugins.KindChannel, plugins.KindAgent} {
		p.Manifest.Kind = k
		if err := h.Run(p); err != nil {
			t.Fatal(err)
		}
		if there := slices.Contains(roster.Names(agent.Principal{}), "q"); there != (k == plugins.KindAgent) {
			t.Errorf("as %s it is an agent: %v", k, there)
		}
	}
	h.Stop("q")
	if slices.Contains(roster.Names(agent.Principal{}), "q") {
		t.Error("it is still there")
	}
}
