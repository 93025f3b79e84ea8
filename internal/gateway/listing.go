package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// List returns the conversations that the principal may read, its own and those that are shared with it, newest first; before is
// the last of the page before. limit 0 is all.
func (g *Gateway) List(ctx context.Context, p Principal, before *journal.Summary, limit int) ([]journal.Summary, error) {
	if err := Decide(p, ActionList, nil); err != nil {
		return nil, err
	}
	queries := []journal.Query{{Limit: limit}}
	if !p.Admin {
		ids, err := g.sharedWith(ctx, p)
		if err != nil {
			return nil, JournalError("list conversations", err)
		}
		queries[0].Tenant, queries[0].Owner = p.Tenant, p.Subject
		if len(ids) > 0 {
			queries = append(queries, journal.Query{Limit: limit, IDs: ids})
		}
	}
	half, err := g.journal.Keys(ctx, journalkey.Deleting("")) // mostly none
	if err != nil {
		return nil, JournalError("list conversations", err)
	}
	gone := map[string]bool{}
	for _, kv := range half {
		gone[strings.TrimPrefix(kv.Key, journalkey.Deleting(""))] = true
	}
	out := []journal.Summary{}
	for {
		page, more, err := g.page(ctx, queries, before, limit)
		if err != nil {
			return nil, JournalError("list conversations", err)
		}
		for _, s := range page {
			// The queries find what may be the principal's to see; the decision stays with the one function.
			if !gone[s.ID] && !s.Unlisted && Decide(p, ActionRead, &s) == nil {
				out = append(out, s)
				if len(out) == limit {
					return out, nil
				}
			}
		}
		if !more {
			return out, nil
		}
		before = &page[len(page)-1]
	}
}

// page returns the first of what all queries select together after before, each conversation once. more says that there
// may be more behind the last of it.
func (g *Gateway) page(ctx context.Context, queries []journal.Query, before *journal.Summary, limit int) (page []journal.Summary, more bool, err error) {
	for _, q := range queries {
		if before != nil {
			q.BeforeUpdated, q.BeforeID = before.Updated, before.ID
		}
		found, err := g.journal.Conversations(ctx, q)
		if err != nil {
			return nil, false, err
		}
		more = more || limit > 0 && len(found) >= limit
		page = append(page, found...)
	}
	slices.SortFunc(page, func(a, b journal.Summary) int { return a.Compare(&b) })
	page = slices.CompactFunc(page, func(a, b journal.Summary) bool { return a.ID == b.ID })
	if limit > 0 && len(page) > limit {
		page, more = page[:limit], true // behind it something of a query that was cut off may belong in between
	}
	return page, more, nil
}

// AgentInfo says which agents can be named.
type AgentInfo struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Default bool   `json:"default,omitempty"`
	// Steers says that a running turn may take further messages; whether it takes one shows when it is asked.
	Steers bool `json:"steers,omitempty"`
	// Sessions says that an operator can list the sessions of its upstream and attach one.
	Sessions bool `json:"sessions,omitempty"`
	// Check is "ok", "unchecked" where the agent can't be asked, or what is wrong, in one line; CheckAgents alone sets it.
	Check string `json:"check,omitempty"`
}

// Agents lists the agents that the principal may name, sorted by name. Those that are there for all are no secret among those who
// may ask at all.
func (g *Gateway) Agents(p Principal) []AgentInfo {
	names := g.cfg.Agents.Names(behalf(p))
	slices.Sort(names)
	out := make([]AgentInfo, 0, len(names))
	for _, name := range names {
		a, ok := g.cfg.Agents.Agent(name, behalf(p))
		if !ok {
			continue // it has just gone
		}
		_, steers := a.Agent.(agent.Steerer)
		_, attaches := a.Agent.(agent.Attacher)
		out = append(out, AgentInfo{Name: name, Kind: a.Kind, Default: name == g.cfg.DefaultAgent, Steers: steers, Sessions: attaches})
	}
	return out
}

// CheckAgents is Agents for the operator, with what each agent says when it is asked whether it is there.
func (g *Gateway) CheckAgents(ctx context.Context, p Principal) ([]AgentInfo, error) {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return nil, err
	}
	all := g.Agents(p)
	var asked sync.WaitGroup
	for i := range all {
		a, ok := g.cfg.Agents.Agent(all[i].Name, behalf(p))
		if !ok {
			continue
		}
		asked.Go(func() {
			switch err := agent.Check(ctx, a.Agent); {
			case err == nil:
				all[i].Check = "ok"
			case errors.Is(err, agent.ErrNoCheck):
				all[i].Check = "unchecked"
			default:
				all[i].Check = agent.OneLine(err)
			}
		})
	}
	asked.Wait()
	return all, nil
}

// Discover lists what the upstream of an agent offers: its agents, sessions or models. Only operators may ask, since an
// upstream's sessions may be anybody's. It returns [agent.ErrNoDiscovery] if the upstream can't be asked.
func (g *Gateway) Discover(ctx context.Context, p Principal, name string) ([]agent.Offer, error) {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return nil, err
	}
	a, ok := g.cfg.Agents.Agent(name, behalf(p))
	if !ok {
		return nil, ErrNotFound
	}
	if a.Discover == nil {
		return nil, agent.ErrNoDiscovery
	}
	return a.Discover(ctx)
}

// Dialects lists the wire formats that streams may be pushed in, sorted by name.
func (g *Gateway) Dialects() []dialect.Dialect { return g.cfg.Dialects.List() }
