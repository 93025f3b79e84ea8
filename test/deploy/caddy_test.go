package deploy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/server"
)

// startCaddy runs docs/deploy/Caddyfile before a gateway. With isFullDuplex the lines for Caddy 2.7 are not comments.
func startCaddy(t *testing.T, caddy, gateway string, isFullDuplex bool) *proxy {
	t.Helper()
	dir := t.TempDir()
	b, err := os.ReadFile("../../docs/deploy/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, http: freeAddress(t), https: freeAddress(t)}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	p.roots = certificate(t, cert, key)
	port := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	logFile := filepath.Join(dir, "caddy.log")
	const servers = "#{\n#	servers {\n#		enable_full_duplex\n#	}\n#}\n"
	replacement := "{\n"
	if isFullDuplex {
		replacement += "	servers {\n		enable_full_duplex\n	}\n"
	}
	replacement += fmt.Sprintf("	admin off\n	storage file_system %s\n	http_port %s\n	https_port %s\n	default_bind 127.0.0.1\n	log {\n		output file %s\n	}\n}\n",
		dir, port(p.http), port(p.https), logFile)
	site := change(t, string(b),
		servers, replacement,
		"127.0.0.1:31337", gateway,
		"\nchat.example.com {\n", fmt.Sprintf("\nchat.example.com {\n\ttls %s %s\n", cert, key))
	conf := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(conf, []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(caddy, "run", "--adapter", "caddyfile", "--config", conf)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	p.start(cmd, logFile)
	return p
}

// Streams go through Caddy word by word, in both directions.
func TestCaddy(t *testing.T) {
	caddy, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("SKIPPED: Caddy is not installed; install it to have streams go through it (apt-get install caddy)")
	}
	version, err := exec.Command(caddy, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(string(version), "v"), "2.%d", &minor); err != nil {
		t.Fatalf("Caddy's version is %s: %v", version, err)
	}
	isFullDuplex := minor >= 7
	h := newHouse(t, "tcp", server.Options{PublicURL: publicURL(t, "https://chat.example.com")})
	p := startCaddy(t, caddy, h.addr, isFullDuplex)
	for front, way := range p.ways("") {
		t.Run(front, func(t *testing.T) { wantFront(t, h, way, front == "HTTP/2" || isFullDuplex) })
	}
	if res := (site{t, "http://chat.example.com", p.client("127.0.0.2", false), true, true}).do("GET", "/seen?x=1", nil); res.StatusCode != 308 {
		t.Errorf("without TLS: %s", res.Status)
	}
}
