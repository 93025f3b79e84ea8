package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Types of an [Offer].
const (
	OfferAgent   = "agent"
	OfferSession = "session"
	OfferModel   = "model"
)

// MaxOffers is the maximum number of entries that are requested of each list of an upstream.
const MaxOffers = 200

// Offer is an agent, a session or a model of an upstream that can be configured.
type Offer struct {
	Type    string    `json:"what"` // OfferAgent, OfferSession or OfferModel
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"` // as the upstream shows it
	Updated time.Time `json:"updated,omitzero"`
	// Spec configures an agent with the offer, in the form that ParseSpec reads. It may name an environment variable or a file with a
	// secret, but it never contains a secret.
	Spec string `json:"spec"`
}

// ErrNoDiscovery is returned if a kind of agent doesn't support discovery.
var ErrNoDiscovery = errors.New("agent: this kind can't list the agents, sessions or models of its upstream")

// Discover lists the offers of a spec's upstream. It takes at most [CheckLimit].
func (k Kinds) Discover(ctx context.Context, s Spec) ([]Offer, error) {
	kind, ok := k.find(s.Kind)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w %q; use one of %s", ErrUnknownKind, s.Kind, strings.Join(k.names(), ", "))
	case kind.Discover == nil:
		return nil, fmt.Errorf("kind %s: %w", s.Kind, ErrNoDiscovery)
	}
	if err := kind.checkOptions(s.Options); err != nil {
		return nil, err
	}
	s = kind.withCurrentNames(s)
	if !strings.Contains(s.Target, "://") {
		s.Target = "" // not an address, but for example a model
	}
	limited, cancel := context.WithTimeout(ctx, CheckLimit)
	defer cancel()
	offers, err := kind.Discover(limited, s)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		err = errors.New("no answer within " + CheckLimit.String())
	}
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", s.Kind, err)
	}
	for i := range offers {
		if offers[i].Spec, err = kind.withoutSecrets(offers[i].Spec); err != nil {
			return nil, err
		}
	}
	return offers, nil
}

// withoutSecrets returns the spec without the options that are secrets.
func (k *Kind) withoutSecrets(spec string) (string, error) {
	if !slices.ContainsFunc(k.Options, func(o Option) bool { return o.Secret }) {
		return spec, nil
	}
	s, err := ParseSpec(spec)
	if err != nil {
		return "", fmt.Errorf("agent %w", err)
	}
	for _, o := range k.Options {
		if o.Secret {
			delete(s.Options, o.Name)
		}
	}
	return s.String(), nil
}

// DiscoverAt lists the offers of an upstream of unknown kind at an address, such as ws://127.0.0.1:4500/ws, with options after a question
// mark. It tries each kind that supports the address and the options, and returns the offers of the first that succeeds. If all fail, the
// error joins theirs.
func (k Kinds) DiscoverAt(ctx context.Context, address string) ([]Offer, error) {
	target, query, _ := strings.Cut(address, "?")
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("invalid address %q; use one such as http://127.0.0.1:8283 or ws://127.0.0.1:4500/ws", address)
	}
	var failed []error
	for _, kind := range k {
		if kind.Discover == nil || !slices.Contains(kind.Schemes, u.Scheme) {
			continue
		}
		s, err := ParseSpec(kind.Name + ":" + target + "?" + query)
		if err != nil {
			return nil, fmt.Errorf("agent %w", err)
		}
		if kind.checkOptions(s.Options) != nil {
			continue
		}
		offers, err := k.Discover(ctx, s)
		if err == nil {
			return offers, nil
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		return nil, fmt.Errorf("no kind of agent can list the agents, sessions or models of %q", address)
	}
	return nil, errors.Join(failed...)
}
