package doctor_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leat-dev/leat/internal/app/doctor"
)

// Over TLS, Stream checks the certificate, and whether the gateway detects HTTPS.
func TestStreamOverTLS(t *testing.T) {
	plain := startGateway(t)
	proxy := between(t, plain, nil)
	ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RequestURI = ""
		r.URL.Scheme, r.URL.Host = "http", proxy[len("http://"):]
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		for k, v := range res.Header {
			w.Header()[k] = v
		}
		buf := make([]byte, 4096)
		for {
			n, err := res.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				return
			}
		}
	}))
	defer ts.Close()
	c := client(t)
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	all := doctor.Stream(t.Context(), c, ts.URL, token)
	want(t, all, doctor.Warn, "reached over HTTPS")
	want(t, all, doctor.Warn, "") // nothing fails
	found := false
	for _, f := range all {
		found = found || f.Level == doctor.OK && len(f.Message) > 20 && f.Message[:15] == "the certificate"
	}
	if !found {
		t.Errorf("no finding about the certificate: %+v", all)
	}
	want(t, doctor.Stream(t.Context(), client(t), ts.URL, token), doctor.Fail, "certificate") // it is self-signed
}
