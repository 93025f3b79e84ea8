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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// startLimit bounds the browser's start; a cold one on a busy machine takes a few seconds.
const startLimit = 60 * time.Second

// Page is one tab. Its methods fail the test where the browser does.
type Page struct {
	t    *testing.T
	conn *websocket.Conn
	id   atomic.Int64

	mu      sync.Mutex
	waiting map[int64]chan answer
	console []string
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Open starts a browser for the test and returns an empty page.
func Open(t *testing.T) *Page {
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
	read := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if _, url, ok := strings.Cut(lines.Text(), "DevTools listening on ws://"); ok {
				read <- url
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
	case url := <-read:
		host, _, _ = strings.Cut(url, "/")
	case <-time.After(startLimit):
		t.Fatal("Chromium did not start")
	}
	return attach(t, host)
}

func attach(t *testing.T, host string) *Page {
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
	p := &Page{t: t, conn: conn, waiting: map[int64]chan answer{}}
	done := make(chan struct{})
	go func() { defer close(done); p.read() }()
	t.Cleanup(func() { _ = conn.CloseNow(); <-done })
	p.call("Page.enable", nil)
	p.call("Runtime.enable", nil)
	p.call("Log.enable", nil)
	return p
}

func (p *Page) read() {
	for {
		_, b, err := p.conn.Read(context.Background())
		if err != nil {
			p.mu.Lock()
			for _, ch := range p.waiting {
				close(ch)
			}
			p.waiting = nil
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
			if ch := p.waiting[m.ID]; ch != nil {
				ch <- m.answer
				delete(p.waiting, m.ID)
			}
		case m.Method == "Runtime.exceptionThrown" || m.Method == "Runtime.consoleAPICalled" || m.Method == "Log.entryAdded":
			p.console = append(p.console, string(m.Params))
		}
		p.mu.Unlock()
	}
}

func (p *Page) call(method string, params any) json.RawMessage {
	p.t.Helper()
	id := p.id.Add(1)
	b, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	ch := make(chan answer, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		p.t.Fatalf("%s: the browser is gone", method)
	}
	p.waiting[id] = ch
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

// Go opens a URL.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.call("Page.navigate", map[string]any{"url": url})
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.call("Page.reload", nil)
}

// Eval runs an expression and returns its value as text; a promise is awaited.
func (p *Page) Eval(expression string) string {
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

// Wait asks, some times a second, until an expression is true. The page has no event for what a test waits for.
func (p *Page) Wait(what, expression string) {
	p.t.Helper()
	limit := time.After(startLimit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for p.Eval("!!("+expression+")") != "true" {
		select {
		case <-tick.C:
		case <-limit:
			p.Screenshot("timeout.png")
			p.t.Fatalf("never came to be: %s; the page says\n%s\nconsole %s", what, p.Eval("document.body.innerText"), p.Console())
		}
	}
}

// Screenshot writes a picture into the folder named by SCREENSHOTS, if that is set.
func (p *Page) Screenshot(name string) {
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

// Console returns what the page wrote to the console, and its errors.
func (p *Page) Console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.console...)
}
