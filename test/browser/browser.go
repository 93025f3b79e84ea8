package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// startLimit is the time limit of the browser's start and of [page.Wait]. A cold start on a busy machine takes several seconds.
const startLimit = 60 * time.Second

// page is one tab of the browser. A method fails the test if the browser reports an error, so it must be called from the test's goroutine.
type page struct {
	t    *testing.T
	conn *websocket.Conn
	id   atomic.Int64

	mu      sync.Mutex
	pending map[int64]chan answer // by id of the command; nil after the connection has ended
	console []string
}

// answer is the browser's response to a DevTools command. Exactly one of the fields is set.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Open starts a headless Chromium for the test and returns an empty page. The test is skipped if Chromium isn't installed. The browser uses a
// new profile, so tests share no cookies or storage. It is killed at the end of the test.
func Open(t *testing.T) *page {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: needs Chromium; on Debian: apt-get install chromium")
	}
	profile := t.TempDir()
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--remote-debugging-port=0", "--window-size=1100,900", "--user-data-dir="+profile, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+profile)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	// Chromium chooses a free port and prints the DevTools address to stderr. The goroutine also drains the rest of the output, so that
	// the browser never blocks on a full pipe.
	addresses := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if _, url, ok := strings.Cut(lines.Text(), "DevTools listening on ws://"); ok {
				addresses <- url
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait() // it was killed
	})
	var host string
	select {
	case url := <-addresses:
		host, _, _ = strings.Cut(url, "/")
	case <-time.After(startLimit):
		t.Fatal("Chromium did not start")
	}
	return attach(t, host)
}

// attach opens a tab, connects to its DevTools socket, and enables the events that read collects. host is the address of the browser's
// DevTools server.
func attach(t *testing.T, host string) *page {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+host+"/json/new?about:blank", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	defer res.Body.Close()
	var tab struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(res.Body).Decode(&tab); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	conn, _, err := websocket.Dial(t.Context(), tab.URL, nil)
	if err != nil {
		t.Fatalf("attach to the tab: %v", err)
	}
	conn.SetReadLimit(64 << 20) // screenshots
	p := &page{t: t, conn: conn, pending: map[int64]chan answer{}}
	ended := make(chan struct{})
	go func() { defer close(ended); p.readAnswers() }()
	t.Cleanup(func() { _ = conn.CloseNow(); <-ended })
	p.call("Page.enable", nil)
	p.call("Runtime.enable", nil)
	p.call("Log.enable", nil)
	return p
}

// readAnswers passes each answer to the call that waits for it, and collects console messages and exceptions, until the connection ends.
func (p *page) readAnswers() {
	for {
		_, b, err := p.conn.Read(context.Background())
		if err != nil {
			p.mu.Lock()
			for _, ch := range p.pending {
				close(ch)
			}
			p.pending = nil
			p.mu.Unlock()
			return
		}
		var m struct {
			ID     int64           `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			answer
		}
		if json.Unmarshal(b, &m) != nil {
			continue
		}
		p.mu.Lock()
		switch {
		case m.ID != 0:
			if ch := p.pending[m.ID]; ch != nil {
				ch <- m.answer
				delete(p.pending, m.ID)
			}
		case m.Method == "Runtime.exceptionThrown" || m.Method == "Runtime.consoleAPICalled" || m.Method == "Log.entryAdded":
			p.console = append(p.console, string(m.Params))
		}
		p.mu.Unlock()
	}
}

// call sends a command and returns its result. It ends with the test's context at the latest.
func (p *page) call(method string, params any) json.RawMessage {
	p.t.Helper()
	id := p.id.Add(1)
	b, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	ch := make(chan answer, 1)
	p.mu.Lock()
	if p.pending == nil {
		p.mu.Unlock()
		p.t.Fatalf("%s: the browser has exited", method)
	}
	p.pending[id] = ch
	p.mu.Unlock()
	if err := p.conn.Write(p.t.Context(), websocket.MessageText, b); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	select {
	case a, ok := <-ch:
		if !ok || a.Error != nil {
			p.t.Fatalf("%s: %+v", method, a.Error)
		}
		return a.Result
	case <-p.t.Context().Done():
		p.t.Fatalf("%s: %v", method, p.t.Context().Err())
	}
	return nil
}

// Go navigates to a URL. It returns before the page has loaded.
func (p *page) Go(url string) {
	p.t.Helper()
	p.call("Page.navigate", map[string]any{"url": url})
}

// Reload reloads the page. It returns before the page has loaded.
func (p *page) Reload() {
	p.t.Helper()
	p.call("Page.reload", nil)
}

// Eval evaluates a JavaScript expression and returns its value as text. A promise is awaited. An exception fails the test.
func (p *page) Eval(expression string) string {
	p.t.Helper()
	var r struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	raw := p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if err := json.Unmarshal(raw, &r); err != nil {
		p.t.Fatal(err)
	}
	if r.Exception != nil {
		p.t.Fatalf("eval %s: %s", expression, raw)
	}
	return fmt.Sprint(r.Result.Value)
}

// Wait polls a JavaScript expression until it is true, because most states of a page have no event. description names the state in the
// failure, which also contains the page's text and console.
func (p *page) Wait(description, expression string) {
	p.t.Helper()
	limit := time.After(startLimit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for p.Eval("!!("+expression+")") != "true" {
		select {
		case <-tick.C:
		case <-limit:
			p.Screenshot("timeout.png")
			p.t.Fatalf("timed out waiting until %s; text of the page:\n%s\nconsole %s", description, p.Eval("document.body.innerText"), p.Console())
		}
	}
}

// Screenshot writes a PNG file into the folder named by the environment variable SCREENSHOTS. If that is empty, it does nothing.
func (p *page) Screenshot(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var shot struct {
		Data string `json:"data"`
	}
	if err := json.Unmarshal(p.call("Page.captureScreenshot", nil), &shot); err != nil {
		p.t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Console returns the page's console messages, exceptions and browser log entries so far, as JSON.
func (p *page) Console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.console)
}
