package data_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/server"
	surface "github.com/leat-dev/leat/internal/server/data"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "operators-token"

type site struct {
	t  *testing.T
	gw *gateway.Gateway
	ts *httptest.Server
}

type quietAgent struct{}

func (quietAgent) Run(context.Context, agent.Input, *agent.Emitter) error { return nil }

func newSite(t *testing.T) *site {
	t.Helper()
	j, log := memory.New(), slog.New(slog.DiscardHandler)
	gw, err := gateway.New(gateway.Config{Journal: j, Agents: gateway.Agents{"a": {Agent: quietAgent{}}}, DefaultAgent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: token})
	surface.Register(srv, gw, surface.Options{
		Retention: data.NewRetention(gw, j, data.Ages{}, "a", log), Purger: data.NewPurger(gw, j, nil, nil, nil, log),
		Exporter: data.NewExporter(gw, j, nil), Importer: data.NewImporter(gw),
	})
	s := &site{t, gw, httptest.NewServer(srv)}
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		s.ts.Close()
	})
	return s
}

func (s *site) open(method, path, as, body string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.ts.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if as != "" {
		r.Header.Set(server.HeaderSubject, as)
		r.Header.Set(server.HeaderTenant, "acme")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// ask returns the answer, if it has the status.
func (s *site) ask(method, path, as, body string, status int) string {
	s.t.Helper()
	res := s.open(method, path, as, body)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != status {
		s.t.Errorf("%s %s as %q: %d, want %d: %s", method, path, as, res.StatusCode, status, b)
	}
	return string(b)
}

// talk makes a conversation of a subject of acme and returns its id.
func (s *site) talk(subject, name string) string {
	s.t.Helper()
	c, _, err := s.gw.Create(s.t.Context(), gateway.Principal{Tenant: "acme", Subject: subject}, gateway.CreateOptions{ID: name, Title: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return c.ID
}

// TestFollowAudit reads the log, and then what comes while it reads.
func TestFollowAudit(t *testing.T) {
	s := newSite(t)
	one := s.talk("alice", "one")
	res := s.open(http.MethodGet, "/api/audit?follow=true&tenant=acme&subject=alice", "", "")
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func() (e audit.Entry) {
		t.Helper()
		for lines.Scan() {
			if len(lines.Bytes()) > 0 {
				if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return e
	}
	if e := next(); e.Conversation != one || e.Seq != 1 {
		t.Errorf("first: %+v", e)
	}
	s.talk("bob", "not hers")
	two := s.talk("alice", "two")
	e := next()
	if e.Conversation != two || e.Seq != 3 {
		t.Errorf("then: %+v", e)
	}
	if got := s.ask(http.MethodGet, "/api/audit?after=2", "", "", 200); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"`+two+`"`) {
		t.Errorf("after the second: %s", got)
	}
	for _, bad := range []string{"after=x", "after=-1", "follow=maybe", "since=soon", "since=-1h"} {
		s.ask(http.MethodGet, "/api/audit?"+bad, "", "", 400)
	}
	if got := s.ask(http.MethodGet, "/api/audit?since=2999-01-01T00:00:00Z", "", "", 200); got != "" {
		t.Errorf("of the future: %s", got)
	}
	s.ask(http.MethodGet, "/api/audit", "alice", "", 403)
}

func TestOwnExport(t *testing.T) {
	s := newSite(t)
	one := s.talk("alice", "one")
	s.talk("bob", "other")
	for _, who := range []string{"", "alice"} {
		got := s.ask(http.MethodGet, "/api/subjects/alice/export?tenant=acme", who, "", 200)
		if !strings.Contains(got, `"id":"`+one+`"`) || strings.Contains(got, "other") || !strings.HasSuffix(got, `"conversations":1,"events":1}`+"\n") {
			t.Errorf("as %q: %s", who, got)
		}
	}
	if got := s.ask(http.MethodGet, "/api/subjects/alice/export", "alice", "", 200); !strings.Contains(got, `"id":"`+one+`"`) {
		t.Errorf("without a tenant: %s", got)
	}
	for _, path := range []string{"alice/export", "alice/export?tenant=acme", "bob/export?tenant=other", "nobody/export"} {
		s.ask(http.MethodGet, "/api/subjects/"+path, "bob", "", 404)
	}
	if got := s.ask(http.MethodGet, "/api/audit?tenant=acme&subject=alice", "", "", 200); strings.Count(got, `"export"`) != 3 {
		t.Errorf("the exports on record: %s", got)
	}
}

func TestOperate(t *testing.T) {
	s := newSite(t)
	one := s.talk("alice", "one")
	if got := s.ask(http.MethodPost, "/api/holds", "", `{"conversation":"`+one+`"}`, 200); !strings.Contains(got, `"since":`) {
		t.Errorf("hold: %s", got)
	}
	s.ask(http.MethodPost, "/api/holds", "", `{"conversation":"none"}`, 404)
	s.ask(http.MethodPost, "/api/holds", "", `{"conversation":"`+one+`","subject":"x"}`, 400)
	s.ask(http.MethodPost, "/api/holds", "", `{"conversion":"one"}`, 400)
	if got := s.ask(http.MethodGet, "/api/holds", "", "", 200); !strings.Contains(got, `{"holds":[{"conversation":"`+one+`"`) {
		t.Errorf("holds: %s", got)
	}
	if got := s.ask(http.MethodDelete, "/api/subjects/alice?tenant=acme", "", "", 409); !strings.Contains(got, `"reason":"held"`) {
		t.Errorf("held: %s", got)
	}
	s.ask(http.MethodDelete, "/api/holds?conversation="+one, "", "", 200)
	s.ask(http.MethodDelete, "/api/holds?conversation="+one, "", "", 404)
	s.ask(http.MethodDelete, "/api/subjects/alice?tenant=acme&dry_run=perhaps", "", "", 400)
	if got := s.ask(http.MethodDelete, "/api/subjects/alice?tenant=acme&dry_run", "", "", 200); !strings.Contains(got, `"dry_run":true,"conversations":1`) {
		t.Errorf("dry run: %s", got)
	}
	if got := s.ask(http.MethodDelete, "/api/subjects/alice?tenant=acme", "", "", 200); !strings.Contains(got, `"conversations":1`) {
		t.Errorf("purge: %s", got)
	}
	if got := s.ask(http.MethodGet, "/api/retention", "", "", 200); !strings.Contains(got, `"dry_run":true,"deleted":0`) {
		t.Errorf("retention: %s", got)
	}
	s.ask(http.MethodPost, "/api/retention?dry_run=true", "", "", 200)
	if got := s.ask(http.MethodPost, "/api/import", "", "{}", 400); !strings.Contains(got, "line 1: an export begins with") || !strings.Contains(got, "0 imported before it") {
		t.Errorf("import: %s", got)
	}
	if got := s.ask(http.MethodPost, "/api/import", "", "", 400); !strings.Contains(got, "before the last line") {
		t.Errorf("import of nothing: %s", got)
	}
}
