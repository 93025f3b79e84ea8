package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/transcript"
)

const (
	logToken = "a-token-that-no-log-may-show"
	logText  = "words that no log may show"
)

// logged runs a gateway through a conversation and several failing requests. It returns the log, the conversation and the turn.
func logged(t *testing.T, content bool) (log, conversation, turn, request string) {
	t.Helper()
	out, stderr := &lockedBuffer{}, &lockedBuffer{}
	a := &app{ctx: context.Background(), in: strings.NewReader(""), stdout: out, stderr: stderr, lookup: func(string) (string, bool) { return "", false }}
	if status := a.run([]string{"version"}); status != 0 { // creates the registries
		t.Fatal("leat version fails")
	}
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.Token, cfg.Drain = []string{"127.0.0.1:0"}, t.TempDir(), logToken, config.Duration(time.Minute)
	cfg.Log = config.Log{Level: "debug", Format: config.FormatJSON, Content: content}
	if err := cfg.Agents.Parse([]string{"demo?speed=0"}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Check(a.kinds, a.getenv); err != nil {
		t.Fatal(err)
	}
	signals, done := make(chan os.Signal, 1), make(chan error, 1)
	go func() { done <- a.serve(cfg, signals) }()
	url := ""
	for late := time.After(waitLimit); url == ""; {
		changed := out.changed()
		if m := regexp.MustCompile(`listens on (http://\S+)`).FindStringSubmatch(out.String()); m != nil {
			url = m[1]
			break
		}
		select {
		case <-changed:
		case err := <-done:
			t.Fatal(err)
		case <-late:
			t.Fatal("the gateway does not start")
		}
	}
	c := &leat.Client{URL: url, Token: logToken}
	created, err := c.Create(t.Context(), leat.CreateOptions{Title: logText})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(t.Context(), created.ID, "echo "+logText)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Follow(t.Context(), created.ID, func(u leat.Update) error {
		if tr := u.Transcript.Turn(ack.Turn); tr != nil && tr.State == transcript.TurnEnded {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A wrong token, an invalid body, a stream that breaks in the middle of its text, and a token in a URL.
	ask := func(method, path, token, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Request-Id", "not-from-a-trusted-proxy")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	id := "/api/conversations/" + created.ID
	ask(http.MethodGet, id+"/events", logToken+"-wrong", "")
	request = ask(http.MethodPost, id+"/commands", logToken, `{"type":"send","message":{"text":"`+logText).Header.Get("X-Request-Id")
	ask(http.MethodPost, id+"/turns?dialect=anthropic", logToken, "event: message_start\ndata: "+logText+"\n\n")
	ask(http.MethodGet, "/api/nowhere?token="+logToken, logToken, "")
	signals <- os.Interrupt
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return stderr.String(), created.ID, ack.Turn, request
}

// The log identifies conversations, turns and requests by their ids. It contains neither texts nor tokens.
func TestLogTellsNoSecrets(t *testing.T) {
	log, conversation, turn, request := logged(t, false)
	for _, secret := range []string{logToken, logText, "no log may show", "not-from-a-trusted-proxy"} {
		if i := strings.Index(log, secret); i >= 0 {
			t.Errorf("the log shows %q: …%s", secret, log[max(0, i-200):min(len(log), i+100)])
		}
	}
	ended, asked := false, false
	for line := range strings.Lines(log) {
		var l struct{ Msg, Conversation, Turn, Outcome, Request, Route string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("not JSON: %s", line)
			continue
		}
		if l.Turn != "" && l.Conversation == "" && l.Route == "" {
			t.Errorf("the line has a turn but no conversation: %s", line)
		}
		ended = ended || l.Msg == "turn ended" && l.Conversation == conversation && l.Turn == turn && l.Outcome == "completed"
		asked = asked || l.Msg == "request" && request != "" && l.Request == request && l.Conversation == conversation
	}
	if !ended || !asked {
		t.Errorf("end of the turn logged: %v, request %q logged: %v\n%s", ended, request, asked, log)
	}
}

// With log.content texts are logged, with the ids of their messages. Tokens are never logged.
func TestLogContent(t *testing.T) {
	log, conversation, turn, _ := logged(t, true)
	if strings.Contains(log, logToken) {
		t.Error("the log shows the token")
	}
	roles := map[string]bool{}
	for line := range strings.Lines(log) {
		var l struct{ Level, Msg, Conversation, Turn, Role, Text string }
		if err := json.Unmarshal([]byte(line), &l); err == nil && l.Msg == "message" && l.Conversation == conversation && l.Level == "DEBUG" {
			roles[l.Role] = roles[l.Role] || l.Role == "user" && strings.Contains(l.Text, logText) || l.Turn == turn && strings.Contains(l.Text, "demo agent")
		}
	}
	if !roles["user"] || !roles["assistant"] {
		t.Errorf("logged: %v\n%s", roles, log)
	}
}

// Secrets in log attributes are masked.
func TestRedact(t *testing.T) {
	var b bytes.Buffer
	l := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: redact}))
	l.Info("m", "token", "s3cret", "Authorization", "s3cret", "api_key", "s3cret", "user-password", "s3cret", slog.Group("g", "Cookie", "s3cret"),
		"header", "Bearer s3cret", "error", errors.New(`Get "https://x/?a=b&token=s3cret&c=d": refused`), "tokens", 7, "turn", "t")
	if got := b.String(); strings.Contains(got, "s3cret") || !strings.Contains(got, `"tokens":7`) || !strings.Contains(got, "c=d") || !strings.Contains(got, "refused") {
		t.Error(got)
	}
}
