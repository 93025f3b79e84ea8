package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"text/tabwriter"

	"github.com/leat-dev/leat/agent"
)

type agentsCmd struct {
	settings
	Check bool `help:"Ask each whether it is there, and say what is wrong. The exit status is 1 where one is not."`
	// Discover is an address, or a spec as ParseSpec reads it.
	Discover string `placeholder:"URL" help:"List what an upstream offers, such as letta:http://127.0.0.1:8283, ws://127.0.0.1:18789, ollama or an agent's name."`
	JSON     bool   `name:"json" help:"As JSON."`
}

// listed is an agent as it is configured.
type listed struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Spec    string `json:"spec"` // secrets are masked
	Default bool   `json:"default,omitempty"`
	// Check is "ok", "unchecked" where the agent can't be asked, or what is wrong.
	Check string `json:"check,omitempty"`
	err   error
}

func (c *agentsCmd) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Discover != "" {
		return a.discover(c, cfg.Agents)
	}
	all := make([]listed, len(cfg.Agents))
	var asked sync.WaitGroup
	for i, s := range cfg.Agents {
		all[i] = listed{Name: s.Name, Kind: s.Kind, Spec: a.kinds.Masked(s).String(), Default: s.Name == cfg.DefaultAgent}
		if c.Check {
			asked.Go(func() { all[i].err = a.checkAgent(a.ctx, s) })
		}
	}
	asked.Wait()
	failed := 0
	for i := range all {
		if !c.Check {
			break
		}
		switch err := all[i].err; {
		case err == nil:
			all[i].Check = "ok"
		case errors.Is(err, agent.ErrNoCheck):
			all[i].Check = "unchecked"
		default:
			failed++
			all[i].Check = agent.OneLine(err)
		}
	}
	if err := a.list(all, c); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d agents are not there", failed, len(all))
	}
	return nil
}

func (a *app) list(all []listed, c *agentsCmd) error {
	if c.JSON {
		return json.NewEncoder(a.out).Encode(all)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, one := range all {
		name := one.Name
		if one.Default {
			name += " (default)"
		}
		fmt.Fprintf(w, "%s\t%s", name, clean(one.Spec))
		if c.Check {
			fmt.Fprintf(w, "\t%s", clean(one.Check))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// checkAgent makes an agent as serve would, and asks it whether it is there.
func (a *app) checkAgent(ctx context.Context, s agent.Spec) error {
	one, err := a.kinds.Make(s)
	if err != nil {
		return err
	}
	if closer, ok := one.(interface{ Close() }); ok {
		defer closer.Close()
	}
	return agent.Check(ctx, one)
}
