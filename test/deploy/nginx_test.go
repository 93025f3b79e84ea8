package deploy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lookNginx finds nginx, which Debian keeps outside of the usual path of users.
func lookNginx(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("SKIPPED: nginx is not installed; install it to have streams go through it (apt-get install nginx-light)")
	return ""
}

// startNginx runs nginx before a gateway. more are further changes of the file.
func startNginx(t *testing.T, gateway string, more ...string) *proxy {
	t.Helper()
	nginx := lookNginx(t)
	dir := t.TempDir()
	b, err := os.ReadFile("../../docs/deploy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, http: freeAddress(t), https: freeAddress(t)}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	p.roots = certificate(t, cert, key)
	site := change(t, string(b), append([]string{
		"server 127.0.0.1:31337;", "server " + gateway + ";",
		"listen 80;", "listen " + p.http + ";",
		"listen 443 ssl", "listen " + p.https + " ssl",
		"listen [::]:80;", "", "listen [::]:443 ssl http2;", "",
		"/etc/letsencrypt/live/chat.example.com/fullchain.pem", cert,
		"/etc/letsencrypt/live/chat.example.com/privkey.pem", key,
	}, more...)...)
	if strings.Contains(site, "proxy_buffering") {
		t.Error("the file changes nginx's buffering; the headers have to do that")
	}
	main := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;\nevents {}\nhttp {\naccess_log off;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(main+site+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(exec.Command(nginx, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", conf), filepath.Join(dir, "error.log"))
	return p
}

// client reaches the proxy as chat.example.com, from an address of the loopback, by HTTP/1.1 or HTTP/2.
func (p *proxy) client(from string, http2 bool) *http.Client {
	p.t.Helper()
	tr := &http.Transport{
		Protocols:       new(http.Protocols),
		TLSClientConfig: &tls.Config{RootCAs: p.roots},
		// Of a stream that is held back not even the headers come.
		ResponseHeaderTimeout: waitLimit,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			to := p.https
			if strings.HasSuffix(addr, ":80") {
				to = p.http
			}
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			return d.DialContext(ctx, "tcp", to)
		},
	}
	tr.Protocols.SetHTTP1(!http2)
	tr.Protocols.SetHTTP2(http2)
	p.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificate writes one for chat.example.com, and returns who trusts it.
func certificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"chat.example.com"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}, &x509.Certificate{}, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, b := range map[string][]byte{certFile: cert, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: kder})} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return roots
}
