package openclaw

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// discover returns the agents and sessions of the gateway that s names. Leat may not run an agent at
// that gateway yet, so discover opens a separate connection and closes it.
func discover(ctx context.Context, dialects dialect.Registry, s agent.Spec) ([]agent.Offer, error) {
	discoverer, err := Kind(dialects).New(s)
	if err != nil {
		return nil, err
	}
	a := discoverer.(*gatewayAgent)
	defer a.Close()
	return a.offers(ctx, s)
}

// offers lists the agents and sessions of the gateway. Each offer's spec is s with the option that selects it.
// Only the label and the display name of a session are offered as its name; a title that the gateway derived from the first
// message is left out. Both lists are fetched over one connection, whose events are ignored.
func (a *gatewayAgent) offers(ctx context.Context, s agent.Spec) ([]agent.Offer, error) {
	conn, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	var readers sync.WaitGroup
	readers.Go(func() { conn.readFrames(ctx, func([]byte, *frame) {}) }) // for the responses; events are ignored
	defer readers.Wait()
	defer func() { _ = conn.ws.CloseNow() }() // ends readFrames

	var agents struct {
		Agents []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"agents"`
	}
	if err := conn.call(ctx, "agents.list", struct{}{}, &agents); err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	var sessions struct {
		Sessions []listedSession `json:"sessions"`
	}
	if err := conn.call(ctx, "sessions.list", map[string]int{"limit": agent.MaxOffers}, &sessions); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	with := func(key, value string) string {
		return agent.Spec{Name: s.Kind, Kind: s.Kind, Target: s.Target, Options: s.Options}.WithOption(key, value).String()
	}
	var offers []agent.Offer
	for _, info := range agents.Agents {
		offers = append(offers, agent.Offer{Type: agent.OfferAgent, ID: info.ID, Name: info.Name, Spec: with("agent", info.ID)})
	}
	for _, info := range sessions.Sessions {
		o := agent.Offer{Type: agent.OfferSession, ID: info.Key, Name: cmp.Or(info.Label, info.Name), Spec: with("session", info.Key)}
		if info.Updated > 0 {
			o.Updated = time.UnixMilli(info.Updated).UTC()
		}
		offers = append(offers, o)
	}
	return offers, nil
}
