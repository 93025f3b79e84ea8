package eliza

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/terminal"
)

// TerminalOptions say what stands behind POST /api/terminal/run.
type TerminalOptions struct {
	// Terminal runs the commands; nil is none: every request is refused.
	Terminal *terminal.Terminal
	// Token is needed beside the admin's. Without it nobody gets in.
	Token string
	// Send takes the frames for the admin's sockets of a client id, or for all of them where that is empty. It may be called
	// from several goroutines; a command waits while it does not return. nil shows them to nobody.
	Send func(client string, frame []byte)
}

// shared are client ids whose output goes to everybody who may see it: commands of agents.
var shared = map[string]bool{"runtime-terminal-action": true, "runtime-shell-action": true}

// retryRun is when a place for a command may be free.
const retryRun = time.Second

// RegisterTerminal adds POST /api/terminal/run.
func RegisterTerminal(srv *server.Server, opt TerminalOptions) {
	t := &shell{srv: srv, TerminalOptions: opt}
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/terminal/run", Access: server.Admin, Stream: true, Handler: t.run})
}

type shell struct {
	srv *server.Server
	TerminalOptions
}

type runRequest struct {
	Command string `json:"command"`
	Client  string `json:"clientId"`
	Token   string `json:"terminalToken"`
	Capture bool   `json:"captureOutput"`
}

type runReply struct {
	OK            bool   `json:"ok"`
	Run           string `json:"runId"`
	Command       string `json:"command"`
	ExitCode      *int   `json:"exitCode"`
	Stdout        string `json:"stdout"`
	Stderr        string `json:"stderr"`
	TimedOut      bool   `json:"timedOut"`
	Truncated     bool   `json:"truncated"`
	MaxDurationMS int64  `json:"maxDurationMs"`
}

// run checks in Eliza's order.
func (t *shell) run(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	if t.Terminal == nil {
		return server.Errorf(http.StatusForbidden, server.ReasonForbidden, "Shell access is disabled")
	}
	if t.Token == "" {
		return server.Errorf(http.StatusForbidden, server.ReasonForbidden, "Shell access needs a token of its own, and none is configured")
	}
	var in runRequest
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	if !t.good(first(r, in.Token, "X-Eliza-Terminal-Token", "X-ElizaOS-Terminal-Token")) {
		t.srv.Log().Warn("terminal token refused", "request", server.RequestID(r.Context()), "remote", server.ClientAddr(r).String())
		return server.Errorf(http.StatusUnauthorized, server.ReasonUnauthorized, "a valid terminal token is needed")
	}
	in.Client = first(r, in.Client, "X-Eliza-Client-Id", "X-ElizaOS-Client-Id")
	if err := in.check(); err != nil {
		return err
	}
	run, err := t.Terminal.Run(in.Command, t.teller(in.Client))
	switch {
	case errors.Is(err, terminal.ErrBusy):
		return &server.Error{Status: http.StatusTooManyRequests, Reason: server.ReasonBusy, Message: "Too many commands run already", RetryAfter: retryRun}
	case errors.Is(err, terminal.ErrClosed):
		return server.ErrShutdown
	case err != nil:
		return err
	}
	t.srv.Log().Info("terminal command", "request", server.RequestID(r.Context()), "run", run.ID, "remote", server.ClientAddr(r).String())
	if !in.Capture {
		server.WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
		return nil
	}
	select {
	case <-run.Done():
	case <-r.Context().Done():
		return r.Context().Err() // the command goes on, as one that nobody captures
	}
	res := run.Result()
	if res.Error != "" {
		return &server.Error{Status: http.StatusServiceUnavailable, Reason: server.ReasonUnavailable, Message: res.Error, RetryAfter: retryRun}
	}
	server.WriteJSON(w, http.StatusOK, runReply{
		OK: true, Run: run.ID, Command: in.Command, ExitCode: res.Code, Stdout: res.Stdout, Stderr: res.Stderr,
		TimedOut: res.TimedOut, Truncated: res.Truncated, MaxDurationMS: t.Terminal.MaxDuration().Milliseconds(),
	})
	return nil
}

// first is the first header that is given, else what the body says.
func first(r *http.Request, body string, headers ...string) string {
	for _, h := range headers {
		if v := r.Header.Get(h); v != "" {
			return v
		}
	}
	return body
}

// good compares in a time that depends on neither token's content nor length.
func (t *shell) good(token string) bool {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(t.Token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

func (in *runRequest) check() error {
	bad := func(format string, args ...any) error {
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, format, args...)
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return bad("command is required")
	case len(utf16.Encode([]rune(in.Command))) > terminal.MaxCommand:
		return bad("command has more than %d characters", terminal.MaxCommand)
	case strings.ContainsAny(in.Command, "\n\r\x00"):
		return bad("command is one line: it may hold no line break and no NUL")
	case in.Client == "":
		return bad("clientId is required: in the body, or in the header X-Eliza-Client-Id")
	}
	if err := event.CheckID("clientId", in.Client); err != nil {
		return bad("%s", err)
	}
	return nil
}

// teller returns what takes the events of a run.
func (t *shell) teller(client string) func(terminal.Event) {
	if t.Send == nil {
		return func(terminal.Event) {}
	}
	if shared[client] {
		client = ""
	}
	return func(e terminal.Event) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil {
			t.srv.Log().Error("terminal frame", "run", e.Run, "error", err) // it holds strings and numbers only
			return
		}
		t.Send(client, bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	}
}
