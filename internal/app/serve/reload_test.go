package serve

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	agents "github.com/leat-dev/leat/agent/all"
	dialects "github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
)

// A reload can't take the name of an agent that is not in the file, such as an installed plugin.
func TestReloadTakesNoNames(t *testing.T) {
	of := func(specs ...string) (c config.Config) {
		t.Helper()
		if err := c.Agents.Parse(specs); err != nil {
			t.Fatal(err)
		}
		return c
	}
	r := &reloader{kinds: agents.Kinds(dialects.Registry()), getenv: os.LookupEnv, roster: gateway.NewRoster(slog.New(slog.DiscardHandler)), liveConfig: of("main=demo"), startConfig: of("main=demo")}
	for _, name := range []string{"main", "plugin"} {
		if err := r.roster.Add(name, gateway.Agent{}); err != nil {
			t.Fatal(err)
		}
	}
	next := of("main=demo?speed=2", "other=demo")
	if all, err := r.makeAgents(&next); err != nil || len(all) != 2 {
		t.Errorf("%d agents, %v", len(all), err)
	}
	next = of("main=demo", "plugin=demo")
	if _, err := r.makeAgents(&next); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), `"plugin"`) {
		t.Errorf("%v", err)
	}
}
