package letta

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/all"
)

func TestDiscover(t *testing.T) {
	t.Setenv("LETTA_TEST_TOKEN", "secret")
	v1, app := newV1(t), newAppServer(t)
	v1.token = "secret"
	for _, url := range []string{v1.srv.URL, app.url()} {
		s := agent.Spec{Name: "letta", Kind: "letta", Target: url, Options: map[string]string{"token_env": "LETTA_TEST_TOKEN"}}
		offers, err := agent.Kinds{Kind(all.Registry())}.Discover(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		want := []agent.Offer{
			{Type: agent.OfferAgent, ID: "agent-1", Name: "Ann's", Updated: time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC), Spec: "letta:" + url + "?agent=agent-1&token_env=LETTA_TEST_TOKEN"},
			{Type: agent.OfferAgent, ID: "agent-2", Spec: "letta:" + url + "?agent=agent-2&token_env=LETTA_TEST_TOKEN"},
		}
		if !reflect.DeepEqual(offers, want) {
			t.Errorf("%s offers %+v, want %+v", url, offers, want)
		}
		for _, o := range offers { // an offer is a valid setting
			spec, err := agent.ParseSpec(o.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (agent.Kinds{Kind(all.Registry())}).Make(spec); err != nil {
				t.Error(err)
			}
		}
	}
	s := agent.Spec{Name: "letta", Kind: "letta", Target: v1.srv.URL}
	if _, err := (agent.Kinds{Kind(all.Registry())}).Discover(t.Context(), s); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("without the token: %v", err)
	}
}

// listed has the agents of both fake servers, with the fields of the real ones.
const listed = `[{"id":"agent-1","name":"Ann's","updated_at":"2026-11-22T15:00:00Z","last_run_completion":"2026-11-22T16:00:00Z"},{"id":"agent-2","name":"","last_run_completion":null}]`
