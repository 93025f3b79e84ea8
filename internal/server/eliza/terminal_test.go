//go:build unix

package eliza

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/terminal"
)

const terminalToken = "a-token-of-the-terminal"

// console is a server with only the terminal.
type console struct {
	t    *testing.T
	srv  *server.Server
	term *terminal.Terminal

	mu     sync.Mutex
	frames map[string][]string // by client id; "" for all sockets of the admin
	last   chan struct{}       // closed for each run that has ended
}

func newConsole(t *testing.T, cfg terminal.Config) *console {
	t.Helper()
	term, err := terminal.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, term: term, srv: server.New(server.Options{Token: secret}), frames: map[string][]string{}, last: make(chan struct{}, 10)}
	RegisterTerminal(c.srv, TerminalOptions{Terminal: term, Token: terminalToken, Send: c.take})
	t.Cleanup(func() { term.Close(); c.srv.Close() })
	return c
}

var runID = regexp.MustCompile(`run-\d{13}-[a-z0-9]{12}`)

func (c *console) take(client string, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames[client] = append(c.frames[client], runID.ReplaceAllString(string(frame), "RUN"))
	if strings.Contains(string(frame), `"event":"exit"`) {
		c.last <- struct{}{}
	}
}

// post sends a request with both tokens. Further headers are name, value pairs.
func (c *console) post(srv *server.Server, body string, headers ...string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/terminal/run", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("X-Eliza-Terminal-Token", terminalToken)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, r)
	return rec.Code, strings.TrimSpace(runID.ReplaceAllString(rec.Body.String(), "RUN"))
}

// The refusals have Eliza's order and texts.
func TestTerminalRefusals(t *testing.T) {
	c := newConsole(t, terminal.Config{})
	none := ""
	for name, tt := range map[string]struct {
		body    string
		headers []string
		status  int
		text    string
	}{
		"no API token":             {`{"command":"id","clientId":"c"}`, []string{"Authorization", none}, 401, "token"},
		"wrong API token":          {`{"command":"id","clientId":"c"}`, []string{"Authorization", "Bearer x"}, 401, "token"},
		"no terminal token":        {`{"command":"id","clientId":"c"}`, []string{"X-Eliza-Terminal-Token", none}, 401, "invalid terminal token"},
		"wrong terminal token":     {`{"command":"id","clientId":"c"}`, []string{"X-Eliza-Terminal-Token", terminalToken + "x"}, 401, "invalid terminal token"},
		"the API token as both":    {`{"command":"id","clientId":"c"}`, []string{"X-Eliza-Terminal-Token", secret}, 401, "invalid terminal token"},
		"wrong in the body":        {`{"command":"id","clientId":"c","terminalToken":"x"}`, []string{"X-Eliza-Terminal-Token", none}, 401, "invalid terminal token"},
		"on behalf of a user":      {`{"command":"id","clientId":"c"}`, []string{server.HeaderSubject, "ann"}, 403, "forbidden"},
		"a foreign page":           {`{"command":"id","clientId":"c"}`, []string{"Origin", "https://evil.example"}, 403, "origin"},
		"token before the command": {`{"command":""}`, []string{"X-Eliza-Terminal-Token", "x"}, 401, "invalid terminal token"},
		"no command":               {`{"command":" ","clientId":"c"}`, nil, 400, "command is required"},
		"too long":                 {`{"command":"` + strings.Repeat("x", 4097) + `","clientId":"c"}`, nil, 400, "4096"},
		"too long in JavaScript":   {`{"command":"` + strings.Repeat("😀", 2049) + `","clientId":"c"}`, nil, 400, "4096"},
		"two lines":                {`{"command":"true\nid","clientId":"c"}`, nil, 400, "one line"},
		"carriage return":          {`{"command":"true\rid","clientId":"c"}`, nil, 400, "one line"},
		"NUL":                      {`{"command":"true\u0000","clientId":"c"}`, nil, 400, "one line"},
		"no client":                {`{"command":"true"}`, nil, 400, "clientId is required"},
		"a client without end":     {`{"command":"true","clientId":"` + strings.Repeat("c", 1000) + `"}`, nil, 400, "clientId"},
		"broken JSON":              {`{`, nil, 400, "JSON"},
		"a number as command":      {`{"command":1}`, nil, 400, "command"},
	} {
		status, body := c.post(c.srv, tt.body, tt.headers...)
		if status != tt.status || !strings.Contains(body, tt.text) {
			t.Errorf("%s: %d %s, want %d %s", name, status, body, tt.status, tt.text)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.frames) > 0 {
		t.Errorf("something ran: %v", c.frames)
	}
}

// Without a terminal or a terminal token, every request is refused.
func TestTerminalIsOff(t *testing.T) {
	c := newConsole(t, terminal.Config{})
	for text, opt := range map[string]TerminalOptions{
		"Shell access is disabled": {Token: terminalToken}, "requires a separate terminal token": {Terminal: c.term},
	} {
		srv := server.New(server.Options{Token: secret})
		RegisterTerminal(srv, opt)
		status, body := c.post(srv, `{"command":"id","clientId":"c","terminalToken":""}`)
		if status != 403 || !strings.Contains(body, text) {
			t.Errorf("%d %s, want 403 %s", status, body, text)
		}
		srv.Close()
	}
}

// The request is answered at once. The output goes to the client that asked, and for shared client ids to all sockets of the
// admin.
func TestTerminalFrames(t *testing.T) {
	c := newConsole(t, terminal.Config{})
	want := []string{
		`{"type":"terminal-output","runId":"RUN","event":"start","command":"echo '<a> & ä'","maxDurationMs":300000}`,
		`{"type":"terminal-output","runId":"RUN","event":"stdout","data":"<a> & ä\n"}`,
		`{"type":"terminal-output","runId":"RUN","event":"exit","code":0}`,
	}
	for body, client := range map[string]string{
		`{"command":"echo '<a> & ä'","clientId":"ui-1"}`:                    "ui-1",
		`{"command":"echo '<a> & ä'","clientId":"runtime-terminal-action"}`: "",
	} {
		if status, got := c.post(c.srv, body); status != 200 || got != `{"ok":true}` {
			t.Errorf("%d %s", status, got)
		}
		<-c.last
		c.mu.Lock()
		if d := cmp.Diff(map[string][]string{client: want}, c.frames); d != "" {
			t.Errorf("%s (-want +got)\n%s", body, d)
		}
		clear(c.frames)
		c.mu.Unlock()
	}
	if status, got := c.post(c.srv, `{"command":"true"}`, "X-Eliza-Client-Id", "by-header"); status != 200 {
		t.Errorf("%d %s", status, got)
	}
	<-c.last
	if len(c.frames["by-header"]) != 2 {
		t.Errorf("%v", c.frames)
	}
}

func TestTerminalCapture(t *testing.T) {
	short := newConsole(t, terminal.Config{MaxDuration: 3 * time.Second}) // long enough for one word
	status, body := short.post(short.srv, `{"captureOutput":true,"clientId":"c","command":"echo a; sleep 100"}`)
	if want := `{"ok":true,"runId":"RUN","command":"echo a; sleep 100","exitCode":null,"stdout":"a\n","stderr":"","timedOut":true,"truncated":false,"maxDurationMs":3000}`; status != 200 || body != want {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}
	c := newConsole(t, terminal.Config{MaxDuration: time.Minute})
	status, body = c.post(c.srv, `{"captureOutput":true,"clientId":"c","command":"echo a; echo b >&2; exit 3"}`)
	if want := `{"ok":true,"runId":"RUN","command":"echo a; echo b >&2; exit 3","exitCode":3,"stdout":"a\n","stderr":"b\n","timedOut":false,"truncated":false,"maxDurationMs":60000}`; status != 200 || body != want {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}
	status, body = c.post(c.srv, `{"captureOutput":true,"clientId":"c","command":"head -c 200000 /dev/zero | tr '\\0' x"}`)
	var got struct {
		Stdout    string
		Truncated bool
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got.Stdout) != terminal.Capture || !got.Truncated {
		t.Errorf("%d, %d bytes, %v: %v", status, len(got.Stdout), got.Truncated, err)
	}
}

// A command that prints 100 MB is answered with the start of its output, and the server keeps answering. The output arrives at
// the terminal's rate, so this test takes a minute.
func TestTerminalFloodFull(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: set LEAT_FULL=1 to have a command print 100 MB")
	}
	t.Parallel()
	const much = 100_000_000
	c := newConsole(t, terminal.Config{})
	srv := server.New(server.Options{Token: secret})
	var told atomic.Int64
	RegisterTerminal(srv, TerminalOptions{Terminal: c.term, Token: terminalToken, Send: func(_ string, frame []byte) { told.Add(int64(len(frame))) }})
	hs := httptest.NewServer(srv)
	hc := hs.Client()
	t.Cleanup(func() { srv.Close(); hs.Close() })
	run := func(command string) (status int, body []byte) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hs.URL+"/api/terminal/run", strings.NewReader(`{"captureOutput":true,"clientId":"c","command":`+quote(command)+`}`))
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("X-Eliza-Terminal-Token", terminalToken)
		res, err := hc.Do(r)
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		defer res.Body.Close()
		body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
		if err != nil {
			t.Error(err)
		}
		return res.StatusCode, body
	}
	answers := func(when string) {
		t.Helper()
		if status, body := run("echo here"); status != 200 || !strings.Contains(string(body), `"stdout":"here\n"`) {
			t.Errorf("%s: %d %s", when, status, body)
		}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		status, body := run(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", much))
		var got struct {
			ExitCode  *int
			Stdout    string
			Truncated bool
		}
		if err := json.Unmarshal(body, &got); err != nil || status != 200 || got.ExitCode == nil || *got.ExitCode != 0 || got.Stdout != strings.Repeat("x", terminal.Capture) || !got.Truncated || len(body) > terminal.Capture+1000 {
			t.Errorf("%d, %d bytes, of which %d printed, truncated %v: %v", status, len(body), len(got.Stdout), got.Truncated, err)
		}
	}()
	for told.Load() < much/10 { // the output comes from another process, so the test has to poll
		select {
		case <-over:
			t.Fatal("it was over before it printed much")
		case <-time.After(10 * time.Millisecond):
		}
	}
	answers("meanwhile")
	<-over
	answers("afterwards")
	if n := told.Load(); n < much {
		t.Errorf("%d bytes were told of", n)
	}
}

func TestTerminalBusy(t *testing.T) {
	c := newConsole(t, terminal.Config{MaxRuns: 1})
	if status, body := c.post(c.srv, `{"command":"sleep 100","clientId":"c"}`); status != 200 {
		t.Fatal(status, body)
	}
	if status, body := c.post(c.srv, `{"command":"true","clientId":"c"}`); status != 429 || !strings.Contains(body, `"reason":"busy"`) || !strings.Contains(body, `"retryAfter":1000`) {
		t.Errorf("%d %s", status, body)
	}
	c.term.Close()
	if status, body := c.post(c.srv, `{"command":"true","clientId":"c"}`); status != 503 {
		t.Errorf("when it stops: %d %s", status, body)
	}
}
