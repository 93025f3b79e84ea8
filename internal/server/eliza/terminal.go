package eliza

import (
	"crypto/sha256"
	"crypto/subtle"
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

// TerminalOptions configure POST /api/terminal/run.
type TerminalOptions struct {
	// Terminal runs the commands. If it is nil, every request is refused.
	Terminal *terminal.Terminal
	// Token is required in addition to the admin's token. If it is empty, every request is refused.
	Token string
	// Send delivers frames to the admin's sockets: to those of a client id, or to all of them if client is empty. Several
	// goroutines may call it. A command waits until it returns. If Send is nil, frames are dropped.
	Send func(client string, frame []byte)
}

// sharedClients are client ids of agents. Every socket of the admin gets the output of their commands.
var sharedClients = map[string]bool{"runtime-terminal-action": true, "runtime-shell-action": true}

// retryRun is the Retry-After of a request above the limit of concurrent commands.
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

// runRequest is the body of a command. With Capture, the response waits for the end of the command and has
// its output. Without it, the response is immediate and the output is only on the sockets.
type runRequest struct {
	Command string `json:"command"`
	Client  string `json:"clientId"`
	Token   string `json:"terminalToken"`
	Capture bool   `json:"captureOutput"`
}

// runReply has the field names of Eliza's server. Stdout and Stderr are cut at the terminal's limit, and
// then Truncated is true.
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

// run makes its checks in the same order as Eliza.
//
// The admin's token alone is not enough: a command has the rights of the gateway's process, so a second
// token is compared too, from the header or the body. The length of the command is counted in UTF-16
// units, as JavaScript does. The log has the id of the run and not the command, which may contain secrets.
func (t *shell) run(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	if t.Terminal == nil {
		return server.Errorf(http.StatusForbidden, server.ReasonForbidden, "Shell access is disabled")
	}
	if t.Token == "" {
		return server.Errorf(http.StatusForbidden, server.ReasonForbidden, "Shell access requires a separate terminal token, but none is configured")
	}
	var in runRequest
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	if !t.isValid(firstOf(r, in.Token, "X-Eliza-Terminal-Token", "X-ElizaOS-Terminal-Token")) {
		t.srv.Log().Warn("terminal token refused", "request", server.RequestID(r.Context()), "remote", server.ClientAddr(r).String())
		return server.Errorf(http.StatusUnauthorized, server.ReasonUnauthorized, "missing or invalid terminal token")
	}
	in.Client = firstOf(r, in.Client, "X-Eliza-Client-Id", "X-ElizaOS-Client-Id")
	if err := in.check(); err != nil {
		return err
	}
	run, err := t.Terminal.Run(in.Command, t.sender(in.Client))
	switch {
	case errors.Is(err, terminal.ErrBusy):
		return &server.Error{Status: http.StatusTooManyRequests, Reason: server.ReasonBusy, Message: "Too many commands are running; try again", RetryAfter: retryRun}
	case errors.Is(err, terminal.ErrClosed):
		return server.ErrShutdown
	case err != nil:
		return err
	}
	t.srv.Log().Info("terminal command", "request", server.RequestID(r.Context()), "run", run.ID, "remote", server.ClientAddr(r).String())
	if !in.Capture {
		return server.Respond(w, map[string]bool{"ok": true}, nil)
	}
	select {
	case <-run.Done():
	case <-r.Context().Done():
		return r.Context().Err() // the command continues without capture
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

// firstOf returns the first header that is set, or else the value of the body.
func firstOf(r *http.Request, body string, headers ...string) string {
	for _, h := range headers {
		if v := r.Header.Get(h); v != "" {
			return v
		}
	}
	return body
}

// isValid compares tokens in constant time, so that the time reveals neither content nor length.
func (t *shell) isValid(token string) bool {
	sum, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(t.Token))
	return subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// check refuses commands that a shell would split into several, and client ids that could not be compared
// safely.
func (in *runRequest) check() error {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return server.Invalid("command is required")
	case len(utf16.Encode([]rune(in.Command))) > terminal.MaxCommand:
		return server.Invalid("command exceeds %d characters", terminal.MaxCommand)
	case strings.ContainsAny(in.Command, "\n\r\x00"):
		return server.Invalid("command contains a line break or NUL; send one line")
	case in.Client == "":
		return server.Invalid("clientId is required: in the body, or in the header X-Eliza-Client-Id")
	}
	if err := event.CheckID("clientId", in.Client); err != nil {
		return server.Invalid("%s", err)
	}
	return nil
}

// sender returns a function that sends the events of a run.
//
// The returned function is called from the goroutine that reads the command's output, so a slow Send slows
// the command and doesn't make the output grow in memory.
func (t *shell) sender(client string) func(terminal.Event) {
	if t.Send == nil {
		return func(terminal.Event) {}
	}
	if sharedClients[client] {
		client = ""
	}
	return func(e terminal.Event) {
		b, err := server.Marshal(e)
		if err != nil {
			t.srv.Log().Error("terminal frame", "run", e.Run, "error", err) // impossible: it contains only strings and numbers
			return
		}
		t.Send(client, b)
	}
}
