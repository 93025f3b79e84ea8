package server_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

func prefixes(all ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// seen is a server that answers with what it made of a request.
func seen(opt server.Options) *server.Server {
	s := server.New(opt)
	s.Handle(server.Route{Method: "GET", Pattern: "/seen", Access: server.Public, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		server.WriteJSON(w, http.StatusOK, map[string]any{"addr": server.ClientAddr(r).String(), "host": r.Host, "local": server.Local(r)})
		return nil
	}})
	return s
}

func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

// The client's address is read from forwarded headers of trusted proxies only, from right to left.
func TestClientAddr(t *testing.T) {
	s := seen(server.Options{Token: token, Hosts: []string{"*"}, TrustedProxies: prefixes("10.0.0.0/8", "2001:db8::/32")})
	for name, c := range map[string]struct {
		remote string
		header http.Header
		want   string
	}{
		"direct":                     {"192.0.2.7:5000", nil, "192.0.2.7"},
		"direct, IPv6":               {"[2001:4860::1]:5000", nil, "2001:4860::1"},
		"IPv4 in IPv6":               {"[::ffff:192.0.2.7]:5000", nil, "192.0.2.7"},
		"an untrusted peer's":        {"192.0.2.7:5000", headers("X-Forwarded-For: 198.51.100.1"), "192.0.2.7"},
		"a proxy's":                  {"10.0.0.1:5000", headers("X-Forwarded-For: 198.51.100.1"), "198.51.100.1"},
		"a proxy over IPv6":          {"[2001:db8::1]:5000", headers("X-Forwarded-For: 198.51.100.1"), "198.51.100.1"},
		"a proxy without headers":    {"10.0.0.1:5000", nil, "10.0.0.1"},
		"a header of the client":     {"10.0.0.1:5000", headers("X-Forwarded-For: 127.0.0.1, 198.51.100.1"), "198.51.100.1"},
		"two proxies":                {"10.0.0.1:5000", headers("X-Forwarded-For: 1.1.1.1, 198.51.100.1, 10.0.0.2"), "198.51.100.1"},
		"two lines":                  {"10.0.0.1:5000", headers("X-Forwarded-For: 1.1.1.1, 198.51.100.1", "X-Forwarded-For: 10.0.0.2"), "198.51.100.1"},
		"all are proxies":            {"10.0.0.1:5000", headers("X-Forwarded-For: 10.0.0.3, 10.0.0.2"), "10.0.0.3"},
		"with a port":                {"10.0.0.1:5000", headers("X-Forwarded-For: 198.51.100.1:4711"), "198.51.100.1"},
		"IPv6 with a port":           {"10.0.0.1:5000", headers("X-Forwarded-For: [2001:4860::1]:4711"), "2001:4860::1"},
		"nonsense":                   {"10.0.0.1:5000", headers("X-Forwarded-For: 198.51.100.1, <script>"), "10.0.0.1"},
		"nonsense left of it":        {"10.0.0.1:5000", headers("X-Forwarded-For: <script>, 198.51.100.1"), "198.51.100.1"},
		"empty items":                {"10.0.0.1:5000", headers("X-Forwarded-For: , 198.51.100.1, ,"), "198.51.100.1"},
		"Forwarded":                  {"10.0.0.1:5000", headers(`Forwarded: for=198.51.100.1;proto=https;by=10.0.0.1`), "198.51.100.1"},
		"Forwarded, quoted":          {"10.0.0.1:5000", headers(`Forwarded: for=1.1.1.1, For="[2001:4860::1]:4711"; Proto=https`), "2001:4860::1"},
		"Forwarded, a comma inside":  {"10.0.0.1:5000", headers(`Forwarded: host="a,b";for=198.51.100.1`), "198.51.100.1"},
		"Forwarded, hidden":          {"10.0.0.1:5000", headers(`Forwarded: for=198.51.100.1, for=_hidden`), "10.0.0.1"},
		"Forwarded, a quote open":    {"10.0.0.1:5000", headers(`Forwarded: for="198.51.100.1`), "10.0.0.1"},
		"Forwarded, untrusted peer":  {"192.0.2.7:5000", headers(`Forwarded: for=198.51.100.1`), "192.0.2.7"},
		"both, and they agree":       {"10.0.0.1:5000", headers(`Forwarded: for=198.51.100.1`, "X-Forwarded-For: 198.51.100.1"), "198.51.100.1"},
		"both, and they do not":      {"10.0.0.1:5000", headers(`Forwarded: for=127.0.0.1`, "X-Forwarded-For: 198.51.100.1"), "10.0.0.1"},
		"Forwarded of the client's":  {"10.0.0.1:5000", headers(`Forwarded: for=127.0.0.1`, "X-Forwarded-Proto: https"), "10.0.0.1"},
		"X-Real-Ip is not looked at": {"10.0.0.1:5000", headers("X-Real-Ip: 198.51.100.1"), "10.0.0.1"},
	} {
		r := httptest.NewRequest("GET", "http://example.org/seen", nil)
		r.RemoteAddr = c.remote
		for k, v := range c.header {
			r.Header[k] = v
		}
		w := record(s, from(r, "10.9.9.9"))
		if !strings.Contains(w.Body.String(), `"addr":"`+c.want+`"`) {
			t.Errorf("%s: %s, want %s", name, w.Body, c.want)
		}
	}
}

// On a Unix socket the peer is trusted as a proxy, because the socket's permissions decide who can connect, and only it knows
// the client's address.
func TestClientAddrUnix(t *testing.T) {
	s := seen(server.Options{Token: token, Hosts: []string{"chat.example"}})
	ask := func(h http.Header) string {
		r := httptest.NewRequest("GET", "http://chat.example/seen", nil)
		r.RemoteAddr = "@"
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Name: "/run/leat.sock", Net: "unix"})))
		for k, v := range h {
			r.Header[k] = v
		}
		return record(s, r).Body.String()
	}
	if got := ask(headers("X-Forwarded-For: 1.1.1.1, 198.51.100.1")); !strings.Contains(got, `"addr":"198.51.100.1"`) {
		t.Errorf("with a proxy's word: %s", got)
	}
	if got := ask(nil); !strings.Contains(got, `"addr":"invalid IP"`) || strings.Contains(got, `"local":true`) {
		t.Errorf("without: %s", got)
	}
}

// Both hosts are checked: the forwarded one and the one in the proxy's own request.
func TestForwardedHost(t *testing.T) {
	s := seen(server.Options{Token: token, Hosts: []string{"chat.example"}, TrustedProxies: prefixes("127.0.0.1/32")})
	for name, c := range map[string]struct {
		host   string
		header http.Header
		status int
		want   string
	}{
		"as the client wrote it":       {"chat.example", nil, 200, "chat.example"},
		"told by the proxy":            {"127.0.0.1:31337", headers("X-Forwarded-Host: chat.example"), 200, "chat.example"},
		"told by Forwarded":            {"127.0.0.1:31337", headers("Forwarded: for=1.1.1.1;host=chat.example"), 200, "chat.example"},
		"foreign":                      {"127.0.0.1:31337", headers("X-Forwarded-Host: evil.example"), 403, ""},
		"foreign, though told a known": {"evil.example", headers("X-Forwarded-Host: chat.example"), 403, ""},
	} {
		r := request("GET", "http://"+c.host+"/seen", nil)
		for k, v := range c.header {
			r.Header[k] = v
		}
		w := record(s, r)
		if w.Code != c.status || c.want != "" && !strings.Contains(w.Body.String(), `"host":"`+c.want+`"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Without a token every caller is the admin, so requests that a proxy forwards from another machine are refused, even if the
// proxy is trusted.
func TestOpenBehindProxy(t *testing.T) {
	for _, s := range []*server.Server{seen(server.Options{}), seen(server.Options{TrustedProxies: prefixes("127.0.0.0/8")})} {
		for header, status := range map[string]int{
			"X-Forwarded-For: 198.51.100.1":            403,
			"X-Forwarded-For: 127.0.0.1, 198.51.100.1": 403,
			"X-Forwarded-For: 198.51.100.1, 127.0.0.1": 403,
			"X-Forwarded-For: what":                    403,
			"Forwarded: for=198.51.100.1":              403,
			"X-Real-Ip: 198.51.100.1":                  403,
			"X-Forwarded-For: 127.0.0.1":               200,
			"Forwarded: for=\"[::1]:80\"":              200,
			"Accept: */*":                              200,
		} {
			r := request("GET", "http://localhost:31337/seen", nil)
			for k, v := range headers(header) {
				r.Header[k] = v
			}
			if w := record(s, r); w.Code != status {
				t.Errorf("%s: %d, want %d", header, w.Code, status)
			}
		}
	}
}

// The session cookie is Secure if a trusted proxy reports that the browser uses TLS.
func TestSecureByProxy(t *testing.T) {
	for header, want := range map[string]bool{"X-Forwarded-Proto: https": true, "X-Forwarded-Proto: http": false, "Forwarded: proto=HTTPS": true, "Accept: */*": false} {
		for _, trusted := range []bool{true, false} {
			opt := server.Options{Token: token}
			if trusted {
				opt.TrustedProxies = prefixes("127.0.0.1/32")
			}
			r := request(http.MethodPost, "http://localhost:31337/api/auth/session", strings.NewReader(`{"token":"`+token+`"}`))
			for k, v := range headers(header) {
				r.Header[k] = v
			}
			c := record(server.New(opt), r).Result().Cookies()
			if len(c) != 1 || c[0].Secure != (want && trusted) {
				t.Errorf("%s, trusted %v: %v", header, trusted, c)
			}
		}
	}
}

// For any headers, an untrusted peer keeps its own address, and the result is a valid address.
func FuzzForwarded(f *testing.F) {
	f.Add("1.1.1.1, 10.0.0.2", "", "https", "a.b")
	f.Add("", `for="[2001:db8::1]:80";proto=https;host="a,b", for=unknown`, "", "")
	f.Add("", `for="\\`, ",", ",")
	s := seen(server.Options{Token: token, Hosts: []string{"*"}, TrustedProxies: prefixes("10.0.0.0/8")})
	f.Fuzz(func(t *testing.T, xff, forwarded, proto, host string) {
		for _, remote := range []string{"192.0.2.7", "10.0.0.1"} {
			r := httptest.NewRequest("GET", "http://example.org/seen", nil)
			r.RemoteAddr = remote + ":5000"
			for name, v := range map[string]string{"X-Forwarded-For": xff, "Forwarded": forwarded, "X-Forwarded-Proto": proto, "X-Forwarded-Host": host} {
				if v != "" {
					r.Header.Set(name, v)
				}
			}
			w := record(s, from(r, "10.9.9.9"))
			if w.Code == http.StatusForbidden {
				continue // the host is invalid
			}
			var got struct{ Addr, Host string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != http.StatusOK || err != nil {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			a, err := netip.ParseAddr(got.Addr)
			if err != nil || a.Is4In6() || a.Zone() != "" {
				t.Errorf("address %q", got.Addr)
			}
			if remote == "192.0.2.7" && (got.Addr != remote || got.Host != "example.org") {
				t.Errorf("%s of %s is believed", w.Body, remote)
			}
		}
	})
}
