package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// list prints the sessions of an agent's upstream.
func (c *importCmd) list(ctx context.Context, a *app) error {
	r := c.remote()
	sessions, err := r.client().Sessions(ctx, c.Agent)
	if err != nil {
		return r.explain(err)
	}
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(sessions)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range sessions {
		updated := ""
		if !s.Updated.IsZero() {
			updated = s.Updated.Local().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", clean(s.ID), updated, clean(s.Title))
	}
	return w.Flush()
}

// attach creates a conversation that continues a session and prints its id.
func (c *importCmd) attach(ctx context.Context, a *app) error {
	r := c.remote()
	id, err := r.client().Attach(ctx, c.Agent, leat.AttachOptions{Session: c.Session, Tenant: c.Tenant, Owner: c.Owner, History: !c.NoHistory})
	if err != nil {
		return r.explain(err)
	}
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(map[string]string{"conversation": id})
	}
	fmt.Fprintln(a.stdout, id)
	return nil
}
