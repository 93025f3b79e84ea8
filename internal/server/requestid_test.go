package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// A request gets a new id unless a trusted proxy sends one, and a trace is continued only if its header is valid.
func TestRequestID(t *testing.T) {
	srv := server.New(server.Options{Token: token, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Hosts: []string{"*"}})
	var id, trace string
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/x", Access: server.Public, Handler: func(_ http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		id, trace = server.RequestID(r.Context()), agent.TraceParent(r.Context())
		return nil
	}})
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	seen := map[string]bool{}
	for _, tt := range []struct {
		from, id, trace string
		kept, traced    bool
	}{
		{"10.1.2.3:9", "proxy-1", good, true, true},
		{"192.0.2.1:9", "client-1", "", false, false},
		{"10.1.2.3:9", "", strings.ToUpper(good), false, false},
		{"10.1.2.3:9", "with\nnewline", good + "-more", false, false},
		{"10.1.2.3:9", strings.Repeat("x", 65), "nonsense", false, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://leat.example/x", nil)
		r.RemoteAddr = tt.from
		r.Header.Set("X-Request-Id", tt.id)
		r.Header.Set("Traceparent", tt.trace)
		w := httptest.NewRecorder()
		id, trace = "", ""
		srv.ServeHTTP(w, r)
		if w.Code != http.StatusOK || id == "" || w.Header().Get("X-Request-Id") != id || (id == tt.id) != tt.kept || seen[id] {
			t.Errorf("%+v: status %d, id %q, answered %q", tt, w.Code, id, w.Header().Get("X-Request-Id"))
		}
		seen[id] = true
		if (trace == tt.trace && trace != "") != tt.traced || trace != "" && !tt.traced {
			t.Errorf("%+v: trace %q", tt, trace)
		}
	}
}
