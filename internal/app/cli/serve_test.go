package cli

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/config"
)

// served is a gateway that runs in this process.
type served struct {
	*leat.Client
	t       *testing.T
	signals chan os.Signal
	out     *lockedBuffer
	done    chan error
}

// serveIn runs serve on a data folder as the command does, with a channel of signals that the test controls.
func serveIn(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return serveWith(t, dir, func(*configuration) {}, args...)
}

type configuration = config.Config

// serveWith is serveIn with a function that changes the configuration.
func serveWith(t *testing.T, dir string, change func(*configuration), args ...string) *served {
	t.Helper()
	s := &served{t: t, signals: make(chan os.Signal, 3), out: &lockedBuffer{}, done: make(chan error, 1)}
	a := &app{ctx: context.Background(), in: strings.NewReader(""), stdout: s.out, stderr: &lockedBuffer{}, lookup: func(string) (string, bool) { return "", false }}
	if status := a.run([]string{"version"}); status != 0 { // creates the registries
		t.Fatal("leat version fails")
	}
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.Drain = []string{"127.0.0.1:0"}, dir, config.Duration(time.Hour)
	if err := cfg.Agents.Parse(args); err != nil {
		t.Fatal(err)
	}
	change(&cfg)
	if err := cfg.Check(a.kinds, a.getenv); err != nil {
		t.Fatal(err)
	}
	return s.run(a, cfg)
}

// run serves until the test sends a signal.
func (s *served) run(a *app, cfg configuration) *served {
	t := s.t
	t.Helper()
	go func() { s.done <- a.serve(cfg, s.signals) }()
	late := time.After(waitLimit)
	for {
		changed := s.out.changed()
		if m := regexp.MustCompile(`listens on (\S+)\n`).FindStringSubmatch(s.out.String()); m != nil {
			s.Client = &leat.Client{URL: m[1]}
			return s
		}
		select {
		case <-changed:
		case err := <-s.done:
			t.Fatal(err)
		case <-late:
			t.Fatal("the gateway does not start")
		}
	}
}

func (s *served) begin(text string) (conversation, turn string) {
	s.t.Helper()
	c, err := s.Create(s.t.Context(), leat.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	ack, err := s.Send(s.t.Context(), c.ID, text)
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.Follow(s.t.Context(), c.ID, func(u leat.Update) error {
		if u.Transcript.Visible(ack.Turn) != "" {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return c.ID, ack.Turn
}

func (s *served) ends() {
	s.t.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Error(err)
		}
	case <-time.After(waitLimit):
		s.t.Fatal("the gateway does not end")
	}
}

// After the first signal running turns end normally, their readers stay connected, and new messages are refused.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	s := serveIn(t, dir, "demo?speed=20")
	id, turn := s.begin("long 300")
	// A reader sees the end of the turn, although the gateway is shutting down.
	reading, seen := make(chan struct{}), make(chan string, 1)
	connected := sync.OnceFunc(func() { close(reading) })
	go func() {
		text := ""
		_ = s.Follow(t.Context(), id, func(u leat.Update) error {
			connected()
			if tr := u.Transcript.Turn(turn); tr != nil && !tr.Unfinished() {
				text = string(tr.Outcome) + " " + u.Transcript.Visible(turn)
				return leat.ErrStop
			}
			return nil
		})
		seen <- text
	}()
	<-reading
	s.signals <- os.Interrupt
	s.ends()
	select {
	case text := <-seen:
		if !strings.HasPrefix(text, "completed ") || !strings.HasSuffix(text, "words.\n") {
			t.Errorf("the reader saw %q", text)
		}
	case <-time.After(waitLimit):
		t.Error("the reader did not see the end of the turn")
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://")); err == nil {
		c.Close()
		t.Error("the address is still open")
	}
}

// The second signal ends the gateway at once: running turns end as interrupted, and their text stays.
func TestStopAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := serveIn(t, dir, "demo")
	id, turn := s.begin("long 5000")
	s.signals <- os.Interrupt
	s.signals <- os.Interrupt
	s.ends()

	s = serveIn(t, dir, "demo")
	tr, err := s.Transcript(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got := tr.Turn(turn); got == nil || got.Outcome != event.Interrupted || tr.Visible(turn) == "" {
		t.Errorf("turn %+v, text %q", got, tr.Visible(turn))
	}
	s.signals <- os.Interrupt
	s.ends()
}

// A gateway on a Unix socket with a path prefix: the greeting shows the public URL.
func TestServeUnix(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := serveWith(t, t.TempDir(), func(c *configuration) {
		c.Listen, c.PublicURL, c.Token = []string{"unix:" + socket}, "https://chat.example/leat", "t"
	}, "demo?speed=0")
	for _, want := range []string{"listens on unix:" + socket, "page       https://chat.example/leat/\n", "--url https://chat.example/leat\n"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, s.out)
		}
	}
	c := &leat.Client{URL: "http://chat.example/leat", Token: "t", HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
	if _, err := c.Create(t.Context(), leat.CreateOptions{}); err != nil {
		t.Error(err)
	}
	c.HTTP.CloseIdleConnections()
	s.signals <- os.Interrupt
	s.ends()
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket file still exists: %v", err)
	}
}
