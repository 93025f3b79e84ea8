package doctor_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/app/doctor"
)

// transportError is a failure of an agent, which doesn't wrap the error of its transport.
type transportError struct{ cause error }

func (e *transportError) Error() string { return "the agent can't be reached" }
func (e *transportError) Cause() error  { return e.cause }

// The advice is by the cause: requests fail as they do for agents.
func TestAdvice(t *testing.T) {
	get := func(client *http.Client, url string) error {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
			t.Fatalf("%s answers", url)
		}
		return err
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	authorities := x509.NewCertPool()
	authorities.AddCert(secure.Certificate())
	otherName := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, ServerName: "other.invalid"}}}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	refused := get(http.DefaultClient, closed.URL)
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"refused", refused, "start the server"},
		{"a failure of an agent", fmt.Errorf("check: %w", &transportError{refused}), "start the server"},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, "correct the host name"},
		{"no name server", &net.DNSError{Err: "server misbehaving", IsTemporary: true}, "name server"},
		{"unknown authority", get(http.DefaultClient, secure.URL), "authority"},
		{"other name", get(otherName, secure.URL), "host name of the certificate"},
		{"no TLS", get(http.DefaultClient, strings.Replace(plain.URL, "http://", "https://", 1)), "write http://"},
		{"expired", x509.CertificateInvalidError{Reason: x509.Expired}, "renew"},
		{"no answer", fmt.Errorf("get: %w", context.DeadlineExceeded), "firewalls"},
		{"anything else", &transportError{}, "correct its configuration"},
	} {
		if got := doctor.Advice(tt.err); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q (%v)", tt.name, got, tt.want, tt.err)
		}
	}
}
