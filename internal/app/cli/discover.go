package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// discover lists what an upstream offers: the upstream of a configured agent, of a spec, or at an address.
func (a *app) discover(c *agentsCmd, configured []agent.Spec) error {
	offers, err := a.offers(c.Discover, configured)
	if err != nil {
		return fmt.Errorf("discover %s: %w", clean(c.Discover), err)
	}
	if c.JSON {
		return a.printJSON(append([]agent.Offer{}, offers...), nil)
	}
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

func (a *app) offers(of string, configured []agent.Spec) ([]agent.Offer, error) {
	if i := slices.IndexFunc(configured, func(s agent.Spec) bool { return s.Name == of }); i >= 0 {
		return a.kinds.Discover(a.ctx, configured[i])
	}
	if scheme, target, ok := strings.Cut(of, ":"); ok && strings.HasPrefix(target, "//") && scheme != "" {
		return a.kinds.DiscoverAt(a.ctx, of)
	}
	s, err := agent.ParseSpec(of)
	if err != nil {
		return nil, err
	}
	return a.kinds.Discover(a.ctx, s)
}
