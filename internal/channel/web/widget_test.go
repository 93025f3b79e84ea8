package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/test/browser"
)

// browserLimit bounds the wait for what a browser sends.
const browserLimit = 30 * time.Second

// maxWidget is the size of the largest compressed widget in bytes.
const maxWidget = 25 << 10

func TestWidgetIsServed(t *testing.T) {
	c := New(Options{Name: "web", Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(c)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/widget.js", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Origin", "https://shop.example") // the script is for all origins
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var b bytes.Buffer
	size, err := b.ReadFrom(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "gzip" || size > maxWidget {
		t.Errorf("status %d, %d bytes, %v, error %v", response.StatusCode, size, response.Header, err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if _, err := content.ReadFrom(z); err != nil || !bytes.Equal(content.Bytes(), widget) {
		t.Errorf("the script is damaged: %v", err)
	}
	r.Header.Set("If-None-Match", response.Header.Get("ETag"))
	again, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("status %d for a script that hasn't changed", again.StatusCode)
	}
}

// within is an expression for an element of the widget.
func within(selector string) string {
	return fmt.Sprintf("document.querySelector('.leat-chat').shadowRoot.querySelector(%q)", selector)
}

// TestWidgetInABrowser opens a page of another origin that embeds the widget in Chromium.
func TestWidgetInABrowser(t *testing.T) {
	tab := browser.Open(t)
	var script string
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		// A strict policy: the widget needs no inline styles and no eval.
		host := strings.TrimSuffix(script, "/widget.js")
		policy := "default-src 'none'; script-src %s; connect-src %s %s; img-src blob: data:"
		w.Header().Set("Content-Security-Policy", fmt.Sprintf(policy, host, host, strings.Replace(host, "http", "ws", 1)))
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><title>Shop</title>
<script src="%s" data-title="Help" data-agent="Ann" data-theme="dark"></script>`, script)
	}))
	defer page.Close()
	log := &conversation{}
	inbox := &mailbox{messages: make(chan channel.InboundMessage, 10)}
	// The widget connects again until Run has begun, so nothing has to wait for that.
	var c *Channel
	var current atomic.Pointer[Channel]
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.String(), tokenPrefix) {
			t.Errorf("the address of a request has the session: %s", r.URL)
		}
		current.Load().ServeHTTP(w, r)
	}))
	defer front.Close()
	script = front.URL + "/widget.js"
	// run starts a channel in place of the one before, as a reload does, and returns the function that stops it.
	run := func() (stop func()) {
		c = New(Options{Name: "web", Listen: listenOff, Origins: []string{page.URL}, Log: slog.New(slog.DiscardHandler)})
		c.ReadFrom(log)
		current.Store(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, inbox) }()
		return sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	stop := run()
	defer func() { stop() }()
	next := func() (m channel.InboundMessage) {
		t.Helper()
		select {
		case m = <-inbox.messages:
		case <-time.After(browserLimit):
			t.Fatal("no message from the widget")
		}
		return m
	}

	tab.Go(page.URL)
	tab.Wait("the launcher is shown", "document.querySelector('.leat-chat')?.shadowRoot.querySelector('.launcher')")
	if tab.Eval(within(".panel")+".hidden") != "true" {
		t.Error("the panel is open")
	}
	if n := len(c.rooms.byChat); n != 0 {
		t.Errorf("%d rooms before the panel was opened", n)
	}
	tab.Eval(within(".launcher") + ".click()")
	const focused = "document.querySelector('.leat-chat').shadowRoot.activeElement === "
	tab.Wait("the input has the focus", focused+within("textarea"))
	tab.Wait("the widget is connected", within(".root")+".dataset.connection === 'connected'")
	say := func(text string) channel.InboundMessage {
		const enter = "(() => { const i = %s; i.value = %q; i.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })); })()"
		tab.Eval(fmt.Sprintf(enter, within("textarea"), text))
		return next()
	}
	m := say("hi <b>you</b>")
	if m.Content != "hi <b>you</b>" || m.SenderID != Visitor {
		t.Errorf("message %+v", m)
	}
	tab.Wait("the message is confirmed", within(".user .bubble")+" && !"+within(".user.pending"))
	log.addMessage(t, log.MessageID(m), m.Content)

	s := &site{Channel: c, t: t}
	y := s.tell(t.Context(), m.ChatID, "t1", log)
	tab.Wait("a typing indicator is shown", within(".typing"))
	y.write("# Title\n\nSome **bold** ", "and `code`, <img src=x onerror=alert(1)>\n\n- one\n- two\n  - inner\n\n```go\nfunc main() {\n",
		"}\n```\n\n[good](https://a.example/?q=1) [bad](javascript:alert(1))\n\n| a | b |\n|---|---|\n| 1 | 2 |")
	y.call("p2", "bash", `{"command":"ls"}`)
	y.ask("bash")
	answer := within(".answer")
	for description, expression := range map[string]string{
		"bold":                within(".answer strong") + "?.textContent === 'bold'",
		"code":                within(".answer p code") + "?.textContent === 'code'",
		"no markup of a text": "!" + within(".answer img") + " && " + within(".answer") + ".textContent.includes('<img src=x')",
		"a list in a list":    within(".answer ul ul li") + "?.textContent === 'inner'",
		"a code block":        within(".answer pre code") + "?.textContent === 'func main() {\\n}'",
		"a table":             within(".answer td:last-child") + "?.textContent === '2'",
		"one link":            within(".answer a") + "?.href === 'https://a.example/?q=1' && " + answer + ".querySelectorAll('a').length === 1",
		"a heading":           within(".answer h3") + "?.textContent === 'Title'",
		"a tool":              within(".tools .running b") + "?.textContent === 'bash' && " + within(".tools code") + ".textContent === 'ls'",
		"a question":          within(".question button") + "?.textContent === 'approve'",
		"a stop button":       "!" + within(".stop") + ".hidden",
		"the log is a log":    within("[role=log]") + ".getAttribute('aria-live') === 'polite' && " + answer + ".getAttribute('aria-busy') === 'true'",
		"the dark theme":      "getComputedStyle(" + within(".panel") + ").backgroundColor === 'rgb(27, 29, 33)'",
	} {
		tab.Wait(description, expression)
	}
	tab.Screenshot("widget.png")
	tab.Eval(within(".question button") + ".click()")
	if m := next(); m.Hints.Command != "answer" {
		t.Errorf("answer %+v", m)
	}
	y.answered()
	tab.Wait("the question is gone", "!"+within(".question"))
	tab.Eval(within(".stop") + ".click()")
	if m := next(); m.Hints.Command != "stop" {
		t.Errorf("stop %+v", m)
	}

	// A cut in the middle of an answer, and a reload. The rest is delivered by another channel, as after a reload of the configuration.
	y.open(event.KindText)
	y.write("Before the cut. ")
	tab.Wait("the text before the cut", within(".answer")+".textContent.includes('Before the cut.')")
	stop()
	if err := <-y.done; !errors.Is(err, channel.ErrStopped) {
		t.Errorf("a channel that was stopped: %v", err)
	}
	tab.Wait("the connection is lost", within(".root")+".dataset.connection === 'disconnected'")
	stop = run()
	s.Channel = c
	y = repeatTold(s, y, m.ChatID)
	y.write("While disconnected. ")
	tab.Wait("the connection is back", within(".root")+".dataset.connection === 'connected'")
	y.write("After it.")
	tab.Wait("the whole text", within(".answer")+".textContent.includes('Before the cut. While disconnected. After it.')")
	tab.Reload()
	tab.Wait("the panel is open again", "document.querySelector('.leat-chat')?.shadowRoot.querySelector('.panel:not([hidden])')")
	tab.Wait("the running answer after a reload", within(".answer")+"?.textContent.includes('Before the cut. While disconnected. After it.')")
	y.end(event.Completed, "")
	tab.Wait("the end", within(".answer")+".getAttribute('aria-busy') === 'false' && "+within(".stop")+".hidden && !"+within(".typing"))
	tab.Wait("one message and one answer", within(".log")+".children.length === 2 && "+within(".user .bubble")+".textContent === 'You: hi <b>you</b>'")

	// A file in each direction, and an error.
	tab.Eval(fmt.Sprintf(`(() => {
		const files = new DataTransfer();
		files.items.add(new File(["content"], "a.txt", { type: "text/plain" }));
		const picker = %s;
		picker.files = files.files;
		picker.dispatchEvent(new Event("change"));
	})()`, within("input[type=file]")))
	if m = say("a file"); len(m.Media) != 1 || m.Media[0].Name != "a.txt" {
		t.Errorf("message %+v", m)
	}
	y = s.tell(t.Context(), m.ChatID, "t2", log)
	y.show("f", event.Media{URL: "/files/1", Name: "b.pdf", MIME: "application/pdf"})
	y.end(event.Failed, "overloaded")
	tab.Wait("the file of the agent", within(".answer button.file"))
	tab.Wait("the error", within(".answer [role=alert]")+"?.textContent === '⚠️ overloaded'")
	tab.Eval(within(".panel") + ".dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
	tab.Wait("the panel is closed", within(".panel")+".hidden")
	tab.Wait("the launcher has the focus", focused+within(".launcher"))
}
