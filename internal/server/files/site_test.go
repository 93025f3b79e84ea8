package files_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/openclaw"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/files"
	"github.com/leat-dev/leat/internal/server/native"
	store "github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

const apiToken = "a-token-of-these-tests"

// site is a gateway with a workspace, over folders that outlive it.
type site struct {
	t         *testing.T
	dir       string
	workspace string
	journal   journal.Journal
	change    func(*gateway.Config)
	store     func(*attachments.Config)
	gw        *gateway.Gateway
	url       string
	stop      func()
}

func (s *site) conversation(as, id string) {
	s.t.Helper()
	if _, _, err := s.gw.Create(s.t.Context(), gateway.Principal{Subject: as}, gateway.CreateOptions{ID: id}); err != nil {
		s.t.Fatal(err)
	}
}

type noClose struct{ journal.Journal }

func (noClose) Close() error { return nil }

func newSite(t *testing.T, change func(*gateway.Config)) *site {
	t.Helper()
	return newSiteOf(t, nil, change)
}

// newSiteOf is newSite with other options for the files.
func newSiteOf(t *testing.T, store func(*attachments.Config), change func(*gateway.Config)) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), journal: noClose{memory.New()}, change: change, store: store}
	s.workspace = filepath.Join(s.dir, "space")
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *site) start() {
	t := s.t
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	kept, err := store.Open(filepath.Join(s.dir, "files"))
	must(err)
	coming, err := store.OpenUploads(filepath.Join(s.dir, "uploads"))
	must(err)
	space, err := store.OpenWorkspace(s.workspace)
	must(err)
	c := gateway.Config{Dialects: dialect.NewRegistry(openclaw.Dialect()), Journal: s.journal, Agents: gateway.Agents{"a": {Agent: quiet{}}}, DefaultAgent: "a"}
	f := attachments.Config{Journal: s.journal, Files: kept, Uploads: coming, Workspace: space}
	if s.store != nil {
		s.store(&f)
	}
	if s.change != nil {
		s.change(&c)
	}
	attached := attachments.NewStore(f)
	c.Attachments = attached
	turns := push.NewTurns(push.Config{Journal: s.journal, Dialects: c.Dialects, Log: slog.New(slog.DiscardHandler)})
	c.Pusher = turns
	gw, err := gateway.New(c)
	must(err)
	must(gw.Start(t.Context()))
	_, _, err = gw.Create(t.Context(), gateway.Principal{Admin: true}, gateway.CreateOptions{ID: "holiday"})
	if err != nil && !strings.Contains(err.Error(), "exists") {
		t.Fatal(err)
	}
	s.gw = gw
	srv := server.New(server.Options{Token: apiToken})
	files.Register(srv, attachments.NewService(attached, gw))
	native.Register(srv, gw)
	native.RegisterIngest(srv, gw, push.NewService(turns, gw))
	ts := httptest.NewServer(srv)
	s.url = ts.URL
	s.stop = func() {
		s.stop = func() {}
		srv.Close()
		ts.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		_ = space.Close()
	}
}

func (s *site) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// call makes a request as a subject; "" is the operator. Headers come in pairs.
func (s *site) call(as, method, path string, body io.Reader, header ...string) (*http.Response, []byte) {
	s.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = s.url + path
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+apiToken)
	if as != "" {
		r.Header.Set("Leat-Subject", as)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res, b
}

func (s *site) want(status int, res *http.Response, b []byte) {
	s.t.Helper()
	if res.StatusCode != status {
		s.t.Fatalf("%s %s: %s %s, want %d", res.Request.Method, res.Request.URL.Path, res.Status, b, status)
	}
}

type brought struct {
	Offset, Length int64
	Path           string
	Media          event.Media
}

func decode(t *testing.T, b []byte) (u brought) {
	t.Helper()
	if err := json.Unmarshal(b, &u); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return u
}

// meta is Upload-Metadata.
func meta(pairs ...string) string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, pairs[i]+" "+base64.StdEncoding.EncodeToString([]byte(pairs[i+1])))
	}
	return strings.Join(all, ",")
}

// create begins a resumable upload and returns its address.
func (s *site) create(as string, length int, metadata string) string {
	s.t.Helper()
	res, b := s.call(as, http.MethodPost, "/api/files/upload", nil, "Tus-Resumable", "1.0.0", "Upload-Length", fmt.Sprint(length), "Upload-Metadata", metadata)
	s.want(http.StatusCreated, res, b)
	return res.Header.Get("Location")
}

func (s *site) patch(as, at string, offset int, body io.Reader) (*http.Response, []byte) {
	s.t.Helper()
	return s.call(as, http.MethodPatch, at, body, "Tus-Resumable", "1.0.0", "Upload-Offset", fmt.Sprint(offset), "Content-Type", "application/offset+octet-stream")
}

// lying lists the files below a folder.
func lying(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
