package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// discover lists what an upstream offers: the upstream of a configured agent, of a spec, or at an address. Each row
// ends with the flag that makes an agent of the offer, so that it can be copied.
func (a *app) discover(c *agentsCmd, configured []agent.Spec) error {
	offers, err := a.offers(c.Discover, configured)
	if err != nil {
		return fmt.Errorf("discover %s: %w", clean(c.Discover), err)
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
		fmt.Fprintf(w, "%s\t%s\t%s\t--agent '%s'\n", o.Type, clean(o.ID), clean(o.Name), clean(o.Spec))
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
