package letta

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
)

// retried returns the failures that a turn reported, in order; nil means that the failure was over.
func (s *stage) retried() []*agent.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.troubles
}

// A turn that runs out of time while it retries must end with the server's error, so each failed attempt is reported.
func TestRetriesReportErrors(t *testing.T) {
	refusals := []fault{{status: 502}, {status: 503}}
	socket := newAppServer(t)
	socket.refuse, socket.scripts = refusals, [][]string{{"Hello."}}
	rest := newV1(t)
	rest.faults, rest.scripts = refusals, [][]string{plainRun("Hello.")}
	for name, a := range map[string]agent.Agent{"App Server": socket.agent(nil), "V1": rest.agent(nil)} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t).run(a, "hello")
			s.want(event.Completed, "", "Hello.")
			got := s.retried()
			if len(got) != 3 || got[2] != nil {
				t.Fatalf("the troubles are %v, want two and then nil", got)
			}
			for i, status := range []string{"502", "503"} {
				if got[i] == nil || got[i].Code != codeStatus || !got[i].Retryable || !strings.Contains(got[i].Message, status) {
					t.Errorf("trouble %d is %+v, want the status %s", i, got[i], status)
				}
			}
		})
	}
}

// An untrusted certificate doesn't change by itself, so the turn fails at once.
func TestUntrustedCertificateIsNotRetried(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for _, scheme := range []string{"https", "wss"} {
		t.Run(scheme, func(t *testing.T) {
			a, err := newAgent(config{URL: scheme + strings.TrimPrefix(srv.URL, "https"), Agent: "agent-1", Background: true}, all.Registry())
			if err != nil {
				t.Fatal(err)
			}
			s := newStage(t).run(a, "hello")
			s.want(event.Failed, codeUnreachable, "")
			var shown *agent.Error
			if !errors.As(s.err, &shown) || shown.Retryable || !strings.Contains(shown.Message, "certificate") {
				t.Errorf("the error is %+v", s.err)
			}
			if len(s.retried()) != 0 {
				t.Errorf("the request was retried: %v", s.retried())
			}
		})
	}
}
