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

// A plugin can't take the name of a configured agent. If the configuration takes the name of a plugin, removing the plugin doesn't remove
// the configured agent.
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
		t.Fatalf("%v; the kind is %q", err, kind("p"))
	}
	if err := h.Configure(p); err != nil {
		t.Errorf("another version: %v", err)
	}
	// The configuration is reloaded, with an agent of the plugin's name.
	if err := roster.Replace("p", configured); err != nil {
		t.Fatal(err)
	}
	if err := h.Configure(p); err == nil {
		t.Error("another version replaced the configured agent")
	}
	h.Stop("p")
	if kind("p") != "configured" {
		t.Error("removing the plugin removed the configured agent")
	}
	// The plugin becomes a channel, and then an agent again.
	p.Manifest.Name = "q"
	for _, k := range []string{plugins.KindAgent, plugins.KindChannel, plugins.KindAgent} {
		p.Manifest.Kind = k
		if err := h.Run(p); err != nil {
			t.Fatal(err)
		}
		if there := slices.Contains(roster.Names(agent.Principal{}), "q"); there != (k == plugins.KindAgent) {
			t.Errorf("as %s, it is in the roster: %v", k, there)
		}
	}
	h.Stop("q")
	if slices.Contains(roster.Names(agent.Principal{}), "q") {
		t.Error("the removed plugin is still in the roster")
	}
}
