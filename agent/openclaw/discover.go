package openclaw

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// discover lists the agents and the sessions of a gateway.
func discover(ctx context.Context, dialects dialect.Registry, s agent.Spec) ([]agent.Offer, error) {
	made, err := Kind(dialects).New(s)
	if err != nil {
		return nil, err
	}
	a := made.(*Agent)
	defer a.Close()
	return a.offers(ctx, s)
}

// offers returns the agents and the sessions, each as an addition to a spec.
func (a *Agent) offers(ctx context.Context, s agent.Spec) ([]agent.Offer, error) {
	l, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { l.read(ctx, func([]byte, *frame) {}) }) // answers find their requests; events are of no interest
	defer reading.Wait()
	defer func() { _ = l.ws.CloseNow() }() // ends the reading

	var agents struct {
		Agents []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"agents"`
	}
	if err := l.call(ctx, "agents.list", struct{}{}, &agents); err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	var sessions struct {
		Sessions []struct {
			Key     string `json:"key"`
			Name    string `json:"displayName"`
			Label   string `json:"label"`
			Updated int64  `json:"updatedAt"` // epoch milliseconds
		} `json:"sessions"`
	}
	if err := l.call(ctx, "sessions.list", map[string]int{"limit": agent.MaxOffers}, &sessions); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	with := func(key, value string) string {
		options := maps.Clone(s.Options)
		if options == nil {
			options = map[string]string{}
		}
		options[key] = value
		return agent.Spec{Name: s.Kind, Kind: s.Kind, Target: s.Target, Options: options}.String()
	}
	var offers []agent.Offer
	for _, one := range agents.Agents {
		offers = append(offers, agent.Offer{What: agent.OfferAgent, ID: one.ID, Name: one.Name, Spec: with("agent", one.ID)})
	}
	for _, one := range sessions.Sessions {
		o := agent.Offer{What: agent.OfferSession, ID: one.Key, Name: one.Label, Spec: with("session", one.Key)}
		if o.Name == "" {
			o.Name = one.Name
		}
		if one.Updated > 0 {
			o.Updated = time.UnixMilli(one.Updated).UTC()
		}
		offers = append(offers, o)
	}
	return offers, nil
}
