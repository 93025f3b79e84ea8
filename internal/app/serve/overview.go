package serve

import (
	"cmp"
	"context"
	"errors"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/service/plugins"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// overlook connects the overview to the agents, the channels and the gateway. It must be called before the overview
// runs.
//
// The list of agents is computed for each request, because agents and plugins come and go while the gateway runs. The
// State of an agent with a process says whether it runs; Check calls its upstream, which may cost time. Plugins that
// are installed but can't run are not in the roster, and are added so that the operator sees their error.
func overlook(o *status.Overview, defaultAgent string, roster *gateway.Roster, in installed, channels *channel.Pipeline, gw *gateway.Gateway) {
	o.Agents = func() (members []status.Member) {
		for _, name := range roster.Names(agent.Principal{}) {
			entry, ok := roster.Agent(name, agent.Principal{})
			if !ok {
				continue // removed since Names
			}
			m := status.Member{Name: name, Kind: entry.Kind, Default: name == defaultAgent}
			if p, ok := entry.Agent.(interface{ State() (bool, error) }); ok {
				m.State = p.State
			}
			if _, ok := entry.Agent.(agent.Checker); ok {
				m.Check = func(ctx context.Context) error { return agent.Check(ctx, entry.Agent) }
			}
			members = append(members, m)
		}
		for _, m := range in.members(plugins.KindAgent) {
			if _, ok := roster.Agent(m.Name, agent.Principal{}); !ok { // it is installed but can't run
				members = append(members, m)
			}
		}
		return members
	}
	o.Channels = func() []status.Member { return append(channelMembers(channels), in.members(plugins.KindChannel)...) }
	o.Damaged = gw.Damaged
	o.Channel = func(s *journal.Summary) string { return cmp.Or(channel.ChannelOf(s), host.ChannelOf(s)) }
}

// channelMembers returns the built-in channels.
func channelMembers(p *channel.Pipeline) (list []status.Member) {
	for _, c := range p.States() {
		list = append(list, status.Member{Name: c.Name, Kind: c.Kind, State: func() (bool, error) { return c.Err == nil, c.Err }})
	}
	return list
}

// members returns the installed plugins of a kind, whether they run or not.
func (in installed) members(kind string) (list []status.Member) {
	if in.store == nil {
		return nil
	}
	for _, p := range in.store.List() {
		if name := p.Manifest.Name; p.Manifest.Kind == kind {
			list = append(list, status.Member{Name: name, Kind: "plugin", State: func() (bool, error) { return in.host.State(name) }})
		}
	}
	return list
}

// addResumedTurns adds the turns that the last run left unfinished to the overview. The gateway must have started, so
// that turns which can't be resumed have ended and are left out. Resume gets a function and calls it twice, because a
// turn may end while it is added.
func (a *App) addResumedTurns(ctx context.Context) error {
	open, err := a.journal.Conversations(ctx, journal.Query{Unfinished: true})
	if err != nil {
		return err
	}
	for _, s := range open {
		for _, id := range s.Open {
			err := a.metrics.overview.Resume(func() (status.Open, bool, error) {
				_, t, err := a.gateway.Turn(ctx, gateway.Principal{Admin: true}, gateway.ActionRead, id)
				if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrDamaged) {
					return status.Open{}, false, nil // its conversation was deleted or can't be read
				}
				is := status.Open{Turn: id, Conversation: s.ID, Title: s.Title, Agent: t.Agent, State: string(t.State), Since: max(t.StartedAt, t.QueuedAt)}
				return is, t.Independent() && t.State != transcript.TurnEnded, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
