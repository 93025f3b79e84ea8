package openclaw

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

func TestCheck(t *testing.T) {
	bubble(t, 4, nil, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		if err := a.Check(t.Context()); err != nil {
			t.Error(err)
		}
		wrong := newAgent(t, f, func(c *config) { c.Token = "wrong" })
		defer wrong.Close()
		if err := wrong.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "token") || strings.Contains(err.Error(), "\n") {
			t.Errorf("a wrong token is %v", err)
		}
	})
}

func TestDiscover(t *testing.T) {
	bubble(t, 4, nil, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		s := agent.Spec{Name: "openclaw", Kind: "openclaw", Target: "ws://h:1", Options: map[string]string{"token_env": "T"}}
		offers, err := a.offers(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		want := []agent.Offer{
			{Type: agent.OfferAgent, ID: "main", Name: "Clawd", Spec: "openclaw:ws://h:1?agent=main&token_env=T"},
			{Type: agent.OfferAgent, ID: "ops", Spec: "openclaw:ws://h:1?agent=ops&token_env=T"},
			{Type: agent.OfferSession, ID: "agent:main:leat-1", Name: "On a walk", Updated: time.UnixMilli(1795190400000).UTC(), Spec: "openclaw:ws://h:1?session=agent%3Amain%3Aleat-1&token_env=T"},
		}
		if !reflect.DeepEqual(offers, want) {
			t.Errorf("it offers %+v, want %+v", offers, want)
		}
	})
}

func TestCanonicalKey(t *testing.T) {
	for _, tt := range []struct{ owner, name, want string }{
		{"", "Leat-C1", "agent:main:leat-c1"},
		{"Ops", "x", "agent:ops:x"},
		{"ops", "agent:main:Y", "agent:main:y"},
	} {
		if got := canonicalKey(tt.owner, tt.name); got != tt.want {
			t.Errorf("canonical(%q, %q) is %q, want %q", tt.owner, tt.name, got, tt.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	b := retry.Backoff{Schedule: backoff}
	for i, base := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		base *= time.Second
		if got := waitFor(&b, 0); got < base/2 || got > base {
			t.Errorf("pause %d is %v, want between %v and %v", i, got, base/2, base)
		}
	}
	if got := waitFor(&b, time.Hour); got < maxHint || got > maxHint+maxBackoff {
		t.Errorf("with a hint it is %v", got)
	}
}
