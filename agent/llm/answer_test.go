package llm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/event"
)

// encoded is a proxy that compresses a server's responses.
func encoded(t *testing.T, s *llmtest.Server, name string, encode func([]byte) []byte) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host}) },
		ModifyResponse: func(res *http.Response) error {
			b, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			b = encode(b)
			res.Body = io.NopCloser(bytes.NewReader(b))
			res.Header.Set("Content-Encoding", name)
			res.Header.Set("Content-Length", fmt.Sprint(len(b)))
			return nil
		},
	}
	h := httptest.NewServer(p)
	t.Cleanup(h.Close)
	return h.URL + u.Path
}

// An unsolicited gzip response is decoded; the error for any other encoding names it.
func TestEncodedAnswers(t *testing.T) {
	zip := func(b []byte) []byte {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write(b) // a buffer never fails
		_ = w.Close()
		return z.Bytes()
	}
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		stage := agenttest.NewStage(t.Context())
		err := stage.Run(made(t, kind, encoded(t, s, "gzip", zip), nil), question("go"))
		if err != nil || stage.Visible() != s.Text() {
			t.Errorf("gzip: %v; readers see %q", err, stage.Visible())
		}
		stage = agenttest.NewStage(t.Context())
		err = stage.Run(made(t, kind, encoded(t, s, "zstd", zip), nil), question("go"))
		if shown := (*agent.Error)(nil); !errors.As(err, &shown) || shown.Code != codeAnswer || !strings.Contains(shown.Message, "zstd") {
			t.Errorf("zstd: %v", err)
		}
	})
}

// A call isn't repeated if the provider's certificate isn't trusted.
func TestUntrustedCertificate(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		stage := agenttest.NewStage(t.Context())
		err := stage.Run(made(t, kind, s.URL, nil), question("go"))
		shown := (*agent.Error)(nil)
		if !errors.As(err, &shown) || shown.Code != codeUnreachable || shown.Retryable || !strings.Contains(shown.Message, "certificate") {
			t.Errorf("%+v", err)
		}
		for _, e := range stage.Events() {
			if e.Type == event.TurnUpdate && e.Get().Phase == "retrying" {
				t.Error("the call was repeated")
			}
		}
	})
}

// If the provider asks for a longer pause than the agent accepts, the error names it.
func TestLongPauseIsShown(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		s.Fail(llmtest.Fault{Kind: llmtest.Status, Status: 429, Says: "rate_limit_error", Message: "slow down", Header: http.Header{"Retry-After": {"5400"}}})
		err := agenttest.NewStage(t.Context()).Run(made(t, kind, s.URL, nil), question("go"))
		if shown := (*agent.Error)(nil); !errors.As(err, &shown) || !strings.HasSuffix(shown.Message, "; try again in 1h30m") || shown.Detail != "slow down" {
			t.Errorf("%+v", err)
		}
	})
}

// Probe reads the status of a background response and fails unless it is in progress.
func TestProbe(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	status := "in_progress"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.RequestURI() != "/responses/resp_1" || r.Header.Get("Authorization") != "Bearer "+llmtest.Key {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if status == "" {
			http.Error(w, `{"error":{"message":"not found"}}`, http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"id":"resp_1","status":%q}`, status)
	}))
	defer s.Close()
	a := made(t, "responses", s.URL, map[string]string{"background": "true"}).(backgroundAgent)
	if err := a.Probe(t.Context(), question("go")); err == nil {
		t.Error("Probe succeeded without a response")
	}
	a.responseIDs.Store("turn", "resp_1")
	for st, works := range map[string]bool{"in_progress": true, "queued": true, "completed": false, "cancelled": false, "": false} {
		status = st
		if err := a.Probe(t.Context(), question("go")); (err == nil) != works {
			t.Errorf("%q: %v", st, err)
		}
	}
}
