package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/base/signature"
	"github.com/leat-dev/leat/internal/base/signature/signaturetest"
	"github.com/leat-dev/leat/internal/service/webhook"
)

// webhookDoc returns the first example in a language in docs/webhooks.md.
func webhookDoc(t *testing.T, language string) string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	if len(all) != 1 {
		t.Fatalf("%d examples in %s", len(all), language)
	}
	return all[0][1]
}

// documentedWebhook returns the webhook of the page, with private addresses allowed: the receiver is on this machine.
func documentedWebhook(t *testing.T, url string) config.Webhooks {
	t.Helper()
	var c config.Config
	if err := c.Parse("leat.yaml", []byte(webhookDoc(t, "yaml"))); err != nil {
		t.Fatal(err)
	}
	if len(c.Webhooks) != 1 {
		t.Fatalf("%+v", c.Webhooks)
	}
	if errs := c.Webhooks.Hooks()[0].Check(); errs != nil {
		t.Error(errs)
	}
	c.Webhooks[0].URL, c.Webhooks[0].AllowPrivate, c.Webhooks[0].Content = url, true, true
	return c.Webhooks
}

// The receiver of the page accepts requests of the gateway and refuses all others.
func TestDocumentedReceiver(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: python3 is not installed; install it to run the receiver of docs/webhooks.md (apt-get install python3)")
	}
	program := webhookDoc(t, "python")
	if n := strings.Count(program, "\n"); n > 15 {
		t.Errorf("the receiver has %d lines", n)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	hooks := documentedWebhook(t, url+"/leat")
	out := &lockedBuffer{}
	cmd := exec.Command(python, "-c", program)
	cmd.Env = append(os.Environ(), "LEAT_WEBHOOK_SECRET="+hooks[0].Secret, "PORT="+port)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the example has no way to end it
		_ = cmd.Wait()
	})
	// The gateway may send before the receiver listens; then it retries.
	s := serveWith(t, t.TempDir(), func(c *configuration) { c.Webhooks = hooks }, "demo?speed=0")
	defer s.stop()
	s.begin("What is 6 * 7?")
	out.waitFor(t, regexp.MustCompile(`(?s)push to - message\.add  What is 6 \* 7\?\npush to - turn\.end completed .*= 42`))

	for name, header := range map[string]string{
		"wrong":   signature.Sign("another secret of somebody", time.Now(), []byte("{}")),
		"old":     signature.Sign(hooks[0].Secret, time.Now().Add(-time.Hour), []byte("{}")),
		"another": signature.Sign(hooks[0].Secret, time.Now(), []byte("[]")),
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(signature.Header, header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s signature: %s", name, resp.Status)
		}
	}
}

func (s *served) stop() {
	s.t.Helper()
	s.signals <- syscall.SIGTERM
	s.ends()
}

// waitFor waits until the output matches.
func (l *lockedBuffer) waitFor(t *testing.T, what *regexp.Regexp) {
	t.Helper()
	late := time.After(waitLimit)
	for {
		changed := l.changed()
		if what.MatchString(l.String()) {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s was not received:\n%s", what, l.String())
		}
	}
}

// A webhook that was not delivered before a restart is delivered after it, with the same id. Without the option content it contains no
// text.
func TestWebhookAcrossARestart(t *testing.T) {
	var up atomic.Bool
	got := make(chan webhook.Body, 100)
	seen := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := signaturetest.Verify("5d1f0c0e8a5b4f0f8e0d1b2c3a495867", r.Header.Get(signature.Header), b, time.Now(), 0); err != nil {
			t.Error(err)
		}
		if bytes.Contains(b, []byte("6 * 7")) {
			t.Errorf("the body contains text: %s", b)
		}
		if !up.Load() {
			seen <- r.Header.Get(webhook.IDHeader)
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		var body webhook.Body
		if err := json.Unmarshal(b, &body); err != nil {
			t.Error(err)
		}
		got <- body
	}))
	defer receiver.Close()
	hooks := documentedWebhook(t, receiver.URL)
	hooks[0].Content = false
	dir := t.TempDir()
	s := serveWith(t, dir, func(c *configuration) { c.Webhooks = hooks }, "demo?speed=0")
	conversation, turn := s.begin("What is 6 * 7?")
	first := <-seen
	s.stop()

	up.Store(true)
	s = serveWith(t, dir, func(c *configuration) { c.Webhooks = hooks }, "demo?speed=0")
	defer s.stop()
	late := time.After(waitLimit)
	var all []webhook.Body
	for len(all) < 2 {
		select {
		case b := <-got:
			all = append(all, b)
		case <-late:
			t.Fatalf("after the restart the receiver got %+v", all)
		}
	}
	if a := all[0]; a.ID != first || a.Type != event.MessageAdd || a.Conversation != conversation || a.Role != event.User {
		t.Errorf("the first delivery is %+v", a)
	}
	if b := all[1]; b.Type != event.TurnEnd || b.Turn != turn || b.Outcome != event.Completed || b.Agent != "demo" || b.Message == "" || b.Text != "" {
		t.Errorf("the second delivery is %+v", b)
	}
}

// If a conversation is deleted before its webhooks are delivered, they contain only its id.
func TestWebhookOfADeletedConversation(t *testing.T) {
	var up atomic.Bool
	got := make(chan string, 100)
	tried := make(chan struct{}, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if !up.Load() {
			tried <- struct{}{}
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		got <- string(b)
	}))
	defer receiver.Close()
	s := serveWith(t, t.TempDir(), func(c *configuration) { c.Webhooks = documentedWebhook(t, receiver.URL) }, "demo?speed=0")
	defer s.stop()
	id, _ := s.begin("What is 6 * 7?")
	<-tried
	if _, err := s.Do(t.Context(), id, leat.Command{Type: "delete"}); err != nil {
		t.Fatal(err)
	}
	up.Store(true)
	for _, want := range []string{"message.add", "turn.end"} {
		select {
		case b := <-got:
			if !strings.Contains(b, `"type":"`+want+`"`) || strings.Contains(b, "6 * 7") || strings.Contains(b, `"text"`) {
				t.Errorf("want %s, got %s", want, b)
			}
		case <-time.After(waitLimit):
			t.Fatalf("%s never came", want)
		}
	}
}

// The page lists every field of a body, and its example is a valid body.
func TestWebhookBodyIsDocumented(t *testing.T) {
	d := json.NewDecoder(strings.NewReader(webhookDoc(t, "json")))
	d.DisallowUnknownFields()
	var b webhook.Body
	if err := d.Decode(&b); err != nil || b.Type != event.TurnEnd || b.Text == "" {
		t.Errorf("example: %+v, %v", b, err)
	}
	doc, err := os.ReadFile("../../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[webhook.Body]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[webhook.Body]().Field(i).Tag.Get("json"), ",")
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("%s is not on the page", name)
		}
	}
}
