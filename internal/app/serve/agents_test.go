package serve

import (
	"net"
	"testing"

	"github.com/leat-dev/leat/internal/app/config"
)

// at is a listener that only has an address.
type at struct {
	net.Listener
	addr net.Addr
}

func (a at) Addr() net.Addr { return a.addr }

func TestAgentsURL(t *testing.T) {
	tcp := func(ip string) net.Listener { return at{addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 81}} }
	unix := at{addr: &net.UnixAddr{Name: "/run/leat.sock", Net: "unix"}}
	secure := config.Config{TLS: config.TLS{Cert: "c", Key: "k"}}
	for name, tt := range map[string]struct {
		cfg       config.Config
		listeners []net.Listener
		want      string
	}{
		"an address":         {config.Config{}, []net.Listener{tcp("127.0.0.1"), tcp("10.0.0.1")}, "http://127.0.0.1:81"},
		"every address":      {config.Config{}, []net.Listener{tcp("0.0.0.0")}, "http://127.0.0.1:81"},
		"every IPv6 address": {config.Config{}, []net.Listener{tcp("::")}, "http://[::1]:81"},
		"behind a socket":    {config.Config{}, []net.Listener{unix, tcp("127.0.0.1")}, "http://127.0.0.1:81"},
		"a socket alone":     {config.Config{BasePath: "/leat"}, []net.Listener{unix}, "/leat"},
		"with TLS":           {secure, []net.Listener{tcp("127.0.0.1")}, "https://127.0.0.1:81"},
		"a base path":        {config.Config{BasePath: "/leat/"}, []net.Listener{tcp("127.0.0.1")}, "http://127.0.0.1:81/leat"},
		"a public URL":       {config.Config{PublicURL: "https://a.example/leat/"}, []net.Listener{tcp("127.0.0.1")}, "https://a.example/leat"},
	} {
		if got, err := agentsURL(&tt.cfg, tt.listeners); err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, tt.want)
		}
	}
}
