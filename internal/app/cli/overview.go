package cli

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/service/plugins"
	"github.com/leat-dev/leat/internal/store/journal"
)

// overlook has the overview know of the agents and the channels.
func overlook(o *status.Overview, def string, roster *gateway.Roster, in installed) {
	o.Agents = func() (all []status.Member) {
		for _, name := range roster.Names(agent.Principal{}) {
			one, ok := roster.Agent(name, agent.Principal{})
			if !ok {
				continue // it has just gone
			}
			m := status.Member{Name: name, Kind: one.Kind, Default: name == def}
			if p, ok := one.Agent.(interface{ State() (bool, error) }); ok {
				m.State = p.State
			}
			if _, ok := one.Agent.(agent.Checker); ok {
				m.Check = func(ctx context.Context) error { return agent.Check(ctx, one.Agent) }
			}
			all = append(all, m)
		}
		for _, m := range in.members(plugins.KindAgent) {
			if _, there := roster.Agent(m.Name, agent.Principal{}); !there { // one that can't be run
				all = append(all, m)
			}
		}
		return all
	}
	o.Channels = func() []status.Member { return in.members(plugins.KindChannel) }
	o.Channel = func(s *journal.Summary) string { return host.ChannelOf(s) }
}

// members are the plugins of a kind that are installed.
func (in installed) members(kind string) (all []status.Member) {
	if in.store == nil {
		return nil
	}
	for _, p := range in.store.List() {
		if name := p.Manifest.Name; p.Manifest.Kind == kind {
			all = append(all, status.Member{Name: name, Kind: "plugin", State: func() (bool, error) { return in.host.State(name) }})
		}
	}
	return all
}

// resumed tells the overview of the turns that the last run left open.
func resumed(ctx context.Context, o *status.Overview, j journal.Journal, gw *gateway.Gateway) error {
	open, err := j.Conversations(ctx, journal.Query{Unfinished: true})
	if err != nil {
		return err
	}
	for _, s := range open {
		for _, id := range s.Open {
			err := o.Resume(func() (status.Open, bool, error) {
				_, t, err := gw.Turn(ctx, gateway.Principal{Admin: true}, gateway.ActionRead, id)
				if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrDamaged) {
					return status.Open{}, false, nil // its conversation is gone, or can't be read
				}
				is := status.Open{Turn: id, Conversation: s.ID, Title: s.Title, Agent: t.Agent, State: t.State, Since: max(t.StartedAt, t.QueuedAt)}
				return is, t.Independent() && t.State != "ended", err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
