package cli

import (
	"context"
	"fmt"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// list prints the sessions of an agent's upstream, newest first, with their ids for --session.
func (c *importCmd) list(ctx context.Context, a *app) error {
	sessions, err := c.client().Sessions(ctx, c.Agent)
	if err != nil || c.JSON {
		return a.printJSON(sessions, c.explain(err))
	}
	w := a.table()
	for _, s := range sessions {
		updated := ""
		// Some upstreams don't report when a session was used last. Times are local, since people compare them with
		// their memory.
		if !s.Updated.IsZero() {
			updated = s.Updated.Local().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", clean(s.ID), updated, clean(s.Title))
	}
	return w.Flush()
}

// attach creates a conversation that continues a session and prints its id. The earlier messages of the session are
// imported unless --no-history is set.
func (c *importCmd) attach(ctx context.Context, a *app) error {
	id, err := c.client().Attach(ctx, c.Agent, leat.AttachOptions{Session: c.Session, Tenant: c.Tenant, Owner: c.Owner, History: !c.NoHistory})
	if err != nil || c.JSON {
		return a.printJSON(map[string]string{"conversation": id}, c.explain(err))
	}
	fmt.Fprintln(a.stdout, id)
	return nil
}
