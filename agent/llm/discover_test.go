package llm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/all"
)

// Discovery reads the list of models in each provider's format.
func TestDiscover(t *testing.T) {
	t.Setenv("LEAT_TEST_KEY", "secret")
	for kind, c := range map[string]struct{ path, header, body string }{
		"anthropic": {"/v1/models?limit=200", "X-Api-Key", `{"data":[{"type":"model","id":"m-1","display_name":"M 1"},{"type":"model","id":"m-2"}],"has_more":false}`},
		"openai":    {"/models", "Authorization", `{"object":"list","data":[{"id":"m-1","object":"model"},{"id":"m-2","object":"model"}]}`},
		"responses": {"/models", "Authorization", `{"object":"list","data":[{"id":"m-1","object":"model"},{"id":"m-2","object":"model"}]}`},
		"gemini":    {"/v1beta/models?pageSize=200", "X-Goog-Api-Key", `{"models":[{"name":"models/m-1","displayName":"M 1"},{"name":"models/m-2"}]}`},
		"ollama":    {"/api/tags", "Authorization", `{"models":[{"name":"m-1","model":"m-1","size":1},{"name":"m-2"}]}`},
	} {
		t.Run(kind, func(t *testing.T) {
			body := c.body
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.String() != c.path || !strings.Contains(r.Header.Get(c.header), "secret") {
					t.Errorf("%s, %s %q", r.URL, c.header, r.Header.Get(c.header))
				}
				fmt.Fprint(w, body)
			}))
			defer s.Close()
			offers, err := agent.Kinds(Kinds(all.Registry())).Discover(t.Context(), agent.Spec{Name: kind, Kind: kind, Target: s.URL, Options: map[string]string{"token_env": "LEAT_TEST_KEY"}})
			if err != nil {
				t.Fatal(err)
			}
			var want []agent.Offer
			for _, id := range []string{"m-1", "m-2"} {
				spec := agent.Spec{Name: kind, Kind: kind, Target: id, Options: map[string]string{"token_env": "LEAT_TEST_KEY", "base_url": s.URL}}
				want = append(want, agent.Offer{Type: agent.OfferModel, ID: id, Spec: spec.String()})
			}
			if !reflect.DeepEqual(offers, want) {
				t.Errorf("offers %+v, want %+v", offers, want)
			}
			body = `{"detail":"hello"}`
			if _, err := agent.Kinds(Kinds(all.Registry())).Discover(t.Context(), agent.Spec{Name: kind, Kind: kind, Target: s.URL, Options: map[string]string{"token_env": "LEAT_TEST_KEY"}}); err == nil || !strings.Contains(err.Error(), "list of models") {
				t.Errorf("a response without models: %v", err)
			}
		})
	}
}
