package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/app/cli/console"
)

// agentsCmd lists the agents that serve would offer with the same flags. It reads the configuration itself and needs
// no running gateway, so agents of plugins, which only the gateway knows, are missing.
type agentsCmd struct {
	settings
	Check bool `help:"Check that each agent answers. The exit status is 1 if one does not."`
	// Discover is a URL, or an agent in the form of serve --agent.
	Discover string `placeholder:"URL" help:"List what an upstream offers, such as letta:http://127.0.0.1:8283, ws://127.0.0.1:18789, ollama or an agent's name."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// agentRow is a configured agent in the list, and its JSON. Check is empty without --check.
type agentRow struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Spec is the agent in the form of --agent, with masked secrets.
	Spec    string `json:"spec"` // secrets are masked
	Default bool   `json:"default,omitempty"`
	// Check is "ok", "unchecked" if the agent can't be checked, or the error.
	Check string `json:"check,omitempty"`
	err   error
}

// Run checks all agents at the same time, because each check may wait for its upstream until a time limit. An agent
// of a kind that can't be checked is not a failure.
func (c *agentsCmd) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Discover != "" {
		return a.discover(c, cfg.Agents)
	}
	// Each goroutine writes the error of one row, so no lock is needed.
	rows := make([]agentRow, len(cfg.Agents))
	var checks sync.WaitGroup
	for i, s := range cfg.Agents {
		rows[i] = agentRow{Name: s.Name, Kind: s.Kind, Spec: a.kinds.Masked(s).String(), Default: s.Name == cfg.DefaultAgent}
		if c.Check {
			checks.Go(func() { rows[i].err = a.checkAgent(a.ctx, s) })
		}
	}
	checks.Wait()
	failed := 0
	for i := range rows {
		if !c.Check {
			break
		}
		// A kind without an upstream, such as demo, has nothing to check. That is neither a success nor a failure.
		switch err := rows[i].err; {
		case err == nil:
			rows[i].Check = "ok"
		case errors.Is(err, agent.ErrNoCheck):
			rows[i].Check = "unchecked"
		default:
			failed++
			rows[i].Check = agent.OneLine(err)
		}
	}
	if err := a.list(rows, c); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d agents unavailable", failed, len(rows))
	}
	return nil
}

// list prints the rows as JSON or as a table. The results of the checks are a column with --check only.
func (a *app) list(rows []agentRow, c *agentsCmd) error {
	if c.JSON {
		return a.printJSON(rows, nil)
	}
	w := a.table()
	for _, row := range rows {
		name := row.Name
		if row.Default {
			name += " (default)"
		}
		fmt.Fprintf(w, "%s\t%s", name, console.Clean(row.Spec))
		if c.Check {
			fmt.Fprintf(w, "\t%s", console.Clean(row.Check))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// checkAgent makes an agent as serve would, and checks that it answers. Agents with processes or connections are
// closed again.
func (a *app) checkAgent(ctx context.Context, s agent.Spec) error {
	checked, err := a.kinds.Make(s)
	if err != nil {
		return err
	}
	// Close ends what the check may have started, such as a process. Agents without anything to end have no Close.
	if closer, ok := checked.(interface{ Close() }); ok {
		defer closer.Close()
	}
	return agent.Check(ctx, checked)
}

// discover lists what an upstream offers: the upstream of a configured agent, of a spec, or at an address. Each row
// ends with the flag that makes an agent of the offer, so that it can be copied.
func (a *app) discover(c *agentsCmd, configured []agent.Spec) error {
	offers, err := a.offers(c.Discover, configured)
	if err != nil {
		return fmt.Errorf("discover %s: %w", console.Clean(c.Discover), err)
	}
	if c.JSON {
		return a.printJSON(append([]agent.Offer{}, offers...), nil)
	}
	// An empty table could be mistaken for an upstream that didn't answer.
	if len(offers) == 0 {
		fmt.Fprintln(a.stderr, "The server answered but offers nothing.")
		return nil
	}
	w := a.table()
	fmt.Fprintln(w, "WHAT\tID\tNAME\tUSE IT WITH")
	for _, o := range offers {
		fmt.Fprintf(w, "%s\t%s\t%s\t--agent '%s'\n", o.Type, console.Clean(o.ID), console.Clean(o.Name), console.Clean(o.Spec))
	}
	return w.Flush()
}

// offers interprets the argument of --discover. The name of a configured agent has precedence, because its spec
// contains the credentials. A URL without a kind, such as ws://127.0.0.1:18789, is tried with every kind whose
// upstreams have such addresses. Anything else is a spec as for --agent.
func (a *app) offers(of string, configured []agent.Spec) ([]agent.Offer, error) {
	if i := slices.IndexFunc(configured, func(s agent.Spec) bool { return s.Name == of }); i >= 0 {
		return a.kinds.Discover(a.ctx, configured[i])
	}
	if scheme, target, ok := strings.Cut(of, ":"); ok && strings.HasPrefix(target, "//") && scheme != "" {
		return a.kinds.DiscoverAt(a.ctx, of)
	}
	s, err := agent.ParseSpec(of)
	if err != nil {
		return nil, fmt.Errorf("agent %w", err)
	}
	return a.kinds.Discover(a.ctx, s)
}

// dialectsCmd lists the dialects that this program can decode, in the order of their names.
type dialectsCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// dialectInfo is a dialect in the list and its JSON.
type dialectInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Framing string `json:"framing"` // sse or lines
	Encodes bool   `json:"encodes"` // Leat can also write this format
}

// Run prints the dialects of this binary. It needs no gateway.
func (c *dialectsCmd) Run(a *app) error {
	// The list is never nil, so that its JSON is always a list.
	rows := []dialectInfo{}
	for _, d := range a.dialects.List() {
		framing := "sse"
		if d.Framing == dialect.Lines {
			framing = "lines"
		}
		rows = append(rows, dialectInfo{d.Name, d.Summary, framing, d.Encoder != nil})
	}
	if c.JSON {
		return a.printJSON(rows, nil)
	}
	w := a.table()
	for _, d := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, d.Framing, d.Summary)
	}
	return w.Flush()
}
