package openclaw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
)

var (
	// errClosed is the error of turns that wait for a connection when Close is called.
	errClosed = errors.New("openclaw: closed")

	errSilent    = errors.New("openclaw: the connection went silent")
	errNoAnswer  = errors.New("openclaw: no answer to a request")
	errLost      = errors.New("openclaw: connection lost")
	errHandOver  = errors.New("openclaw: the gateway is shutting down")
	errNotSent   = errors.New("openclaw: the turn was not sent") // the turn waits for a connection or for its session
	errAmbiguous = errors.New("openclaw: histories of a session don't agree on a run")

	errSlow  = errors.New("openclaw: the file took too long")
	errLarge = fmt.Errorf("openclaw: the file has more than %d MiB", maxFile>>20)
)

// The error codes of this agent's turns. Runs that fail upstream have codes of the dialect.
const (
	codeUnreachable = "agent_unreachable"
	codeRefused     = "agent_refused"  // the gateway refuses the client or its permissions
	codeRequest     = "agent_request"  // the gateway refuses the request
	codeLost        = "run_lost"       // a run disappeared without an end
	codeAttachment  = "attachment"     // a file of the message can't be sent
	codeFlood       = "too_large"      // the turn exceeds the size limit
	codeRestarted   = "agent_restarts" // the gateway went away and did not come back
)

// rpcError is the error in a response of the gateway.
type rpcError struct {
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Details    json.RawMessage `json:"details"`
	Retryable  bool            `json:"retryable"`
	RetryAfter int64           `json:"retryAfterMs"`
}

// Error is the gateway's own text.
func (e *rpcError) Error() string { return e.Message }

// detail decodes the parts of Details that Leat uses. Details of another shape leave them empty.
func (e *rpcError) detail() (d struct {
	Code      string `json:"code"`
	Reason    string `json:"reason"`
	Scope     string `json:"missingScope"`
	RequestID string `json:"requestId"`
},
) {
	_ = json.Unmarshal(e.Details, &d) // the fields stay empty if the details have another form
	return d
}

// isUnauthorized reports whether the gateway refused the token. Old versions have no detail codes, so their message is checked.
func (e *rpcError) isUnauthorized() bool {
	switch e.detail().Code {
	case "AUTH_TOKEN_MISMATCH", "AUTH_TOKEN_MISSING", "AUTH_UNAUTHORIZED", "AUTH_REQUIRED":
		return true
	}
	return strings.HasPrefix(e.Message, "unauthorized")
}

// isDisowned reports whether the gateway restarted while the message was queued in it. The gateway stores such a message under
// its run's id, but neither answers it nor accepts it again under that id.
func (e *rpcError) isDisowned() bool {
	return e.Code == "UNAVAILABLE" && strings.Contains(e.Message, "Pending input ownership ended")
}

// refusal is a failure that a retry can't fix: an operator has to change the configuration of Leat or of the gateway.
// Turns that wait for a connection fail with it at once, instead of waiting until their time limit.
type refusal struct {
	message     string
	certificate bool // Leat rejects the gateway's certificate
}

// Error is a text for users.
func (e *refusal) Error() string { return e.message }

// retryLaterError is a failure to connect with the time after which the gateway wants the next attempt.
type retryLaterError struct {
	err   error
	after time.Duration
}

func (e *retryLaterError) Error() string { return e.err.Error() }
func (e *retryLaterError) Unwrap() error { return e.err }

// explain returns what an operator can do about a refused handshake or request, or nil if no action would help. Old gateways
// send no code in the details; for them the beginning of the message is compared.
func explain(e *rpcError) *refusal {
	d := e.detail()
	say := func(format string, args ...any) *refusal { return &refusal{message: fmt.Sprintf(format, args...)} }
	switch {
	case d.Code == "MISSING_SCOPE" || strings.HasPrefix(e.Message, "missing scope"):
		scope := cmp.Or(d.Scope, strings.TrimSpace(strings.TrimPrefix(e.Message, "missing scope:")))
		return say("this device lacks the scope %s; approve it on the gateway's machine: openclaw devices list, openclaw devices approve", scope)
	case d.Code == "PAIRING_REQUIRED" || e.Code == "NOT_PAIRED" || strings.HasPrefix(e.Message, "pairing required"):
		return say("this device is not paired with OpenClaw; approve it on the gateway's machine: openclaw devices list, openclaw devices approve")
	case e.isUnauthorized():
		return say("OpenClaw refused the token: %s", e.Message)
	case d.Code == "PROTOCOL_MISMATCH" || e.Message == "protocol mismatch":
		return say("this OpenClaw supports neither protocol %d nor %d: %s", minProtocol, maxProtocol, string(e.Details))
	}
	return nil
}

// temporary reports whether a request may be repeated, and after what time. The time is 0 if the gateway names none.
func temporary(e *rpcError) (time.Duration, bool) {
	retryable := e.Retryable || e.RetryAfter > 0 || e.Code == "UNAVAILABLE" || e.Code == "RATE_LIMITED"
	return time.Duration(max(e.RetryAfter, 0)) * time.Millisecond, retryable
}

// agentError converts a failure to the *agent.Error that viewers see. Details may contain host names and the gateway's text and are
// meant for operators; messages contain neither. Only a failure to reach the gateway is always retryable: a refusal stays until
// an operator has resolved it, and for a refused request the gateway's own flags decide.
func agentError(err error) error {
	var a *agent.Error
	var refusalErr *refusal
	var rpc *rpcError
	switch {
	case errors.As(err, &a):
		return a
	case errors.As(err, &refusalErr) && refusalErr.certificate:
		return &agent.Error{Code: codeUnreachable, Message: "OpenClaw's certificate is not trusted", Detail: refusalErr.message}
	case errors.As(err, &refusalErr):
		return &agent.Error{Code: codeRefused, Message: "OpenClaw refused the connection or the request", Detail: refusalErr.message}
	case errors.As(err, &rpc):
		_, retryable := temporary(rpc)
		return &agent.Error{Code: codeRequest, Message: "OpenClaw refused the request", Detail: rpc.Message, Retryable: retryable}
	}
	return &agent.Error{Code: codeUnreachable, Message: call.WithCause("OpenClaw can't be reached", err), Detail: err.Error(), Retryable: true}
}
