package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
)

// discoverers are kinds whose upstreams behave as their names say.
func discoverers() agent.Kinds {
	offers := func(err error) func(context.Context, agent.Spec) ([]agent.Offer, error) {
		return func(_ context.Context, s agent.Spec) ([]agent.Offer, error) {
			return []agent.Offer{{Type: agent.OfferModel, ID: s.Kind, Spec: s.Kind + " at " + s.Target + " with " + s.Options["token_env"]}}, err
		}
	}
	token := []agent.Option{{Name: "token_env"}}
	return agent.Kinds{
		{Name: "mute"},
		{Name: "broken", Target: "URL", Options: token, Schemes: []string{"ws", "http"}, Discover: offers(errors.New("refused"))},
		{Name: "plain", Target: "MODEL", Schemes: []string{"http"}, Discover: offers(nil)},
		{Name: "good", Target: "URL", Options: token, Schemes: []string{"http", "https"}, Discover: offers(nil)},
	}
}

func TestDiscover(t *testing.T) {
	kinds := discoverers()
	for spec, want := range map[string]string{
		"good:http://h?token_env=T": "good at http://h with T",
		"plain:gpt-7":               "plain at  with ", // the target is a model, not an address
		"mute":                      "can't list",
		"absent:http://h":           `unknown kind "absent"`,
		"good:http://h?colour=red":  `no option "colour"`,
		"broken:http://h":           "kind broken: refused",
	} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if offers, err := kinds.Discover(t.Context(), s); !found(offers, err, want) {
			t.Errorf("%s: %+v, %v; want %q", spec, offers, err, want)
		}
	}
	for address, want := range map[string]string{
		"http://h":             "plain at http://h with ", // the first that gets an answer
		"http://h?token_env=T": "good at http://h with T", // the first that has the option
		"https://h":            "good at https://h with ",
		"ws://h":               "kind broken: refused",
		"ftp://h":              "no kind of agent",
		"http:///path":         "invalid address",
	} {
		if offers, err := kinds.DiscoverAt(t.Context(), address); !found(offers, err, want) {
			t.Errorf("%s: %+v, %v; want %q", address, offers, err, want)
		}
	}
}

func found(offers []agent.Offer, err error, want string) bool {
	if err != nil {
		return strings.Contains(err.Error(), want)
	}
	return len(offers) == 1 && offers[0].Spec == want
}
