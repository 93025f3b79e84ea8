package openclaw

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
)

var (
	// ErrClosed says that the agent was closed.
	errClosed = errors.New("openclaw: closed")

	errSilent    = errors.New("openclaw: the connection went silent")
	errNoAnswer  = errors.New("openclaw: no answer to a request")
	errLost      = errors.New("openclaw: connection lost")
	errHandOver  = errors.New("openclaw: the gateway is shutting down")
	errNotSent   = errors.New("openclaw: the turn was not sent") // it waits for a connection or for its session
	errAmbiguous = errors.New("openclaw: histories of a session don't agree on a run")

	errSlow  = errors.New("openclaw: the file took too long")
	errLarge = fmt.Errorf("openclaw: the file has more than %d MiB", maxFile>>20)
)

// The codes of the errors that turns of this agent end with, beside those that the gateway itself gives its runs.
const (
	codeUnreachable = "agent_unreachable"
	codeRefused     = "agent_refused"  // the gateway does not let this client in, or not this far
	codeRequest     = "agent_request"  // the gateway does not take the request
	codeLost        = "run_lost"       // a run vanished without its end
	codeAttachment  = "attachment"     // a file can't be handed on
	codeFlood       = "too_large"      // more than a turn may say
	codeRestarted   = "agent_restarts" // what took its place did not come back
)

// rpcError is an error that the gateway answers a request with.
type rpcError struct {
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Details    json.RawMessage `json:"details"`
	Retryable  bool            `json:"retryable"`
	RetryAfter int64           `json:"retryAfterMs"`
}

func (e *rpcError) Error() string { return e.Message }

// detail is what the details of an error name.
func (e *rpcError) detail() (d struct {
	Code      string `json:"code"`
	Reason    string `json:"reason"`
	Scope     string `json:"missingScope"`
	RequestID string `json:"requestId"`
},
) {
	_ = json.Unmarshal(e.Details, &d) // details of another shape say nothing
	return d
}

// unauthorized reports whether it is the token that is refused.
func (e *rpcError) isUnauthorized() bool {
	switch e.detail().Code {
	case "AUTH_TOKEN_MISMATCH", "AUTH_TOKEN_MISSING", "AUTH_UNAUTHORIZED", "AUTH_REQUIRED":
		return true
	}
	return strings.HasPrefix(e.Message, "unauthorized")
}

// disowned reports whether the gateway was restarted while the message waited in it: it keeps such a message, under the id of its run,
// but neither answers it nor takes it again under that id.
func (e *rpcError) isDisowned() bool {
	return e.Code == "UNAVAILABLE" && strings.Contains(e.Message, "Pending input ownership ended")
}

// refusal is a failure to connect that another attempt will not mend: somebody has to do something.
type refusal struct {
	message     string
	certificate bool // this side refuses the gateway's
}

func (e *refusal) Error() string { return e.message }

// hinted is a failure to connect with the gateway's word on when to come back.
type retryLaterError struct {
	err   error
	after time.Duration
}

func (e *retryLaterError) Error() string { return e.err.Error() }
func (e *retryLaterError) Unwrap() error { return e.err }

// explain says what an operator can do about a refused handshake or request; nil where it is none that needs one.
func explain(e *rpcError) *refusal {
	d := e.detail()
	say := func(format string, args ...any) *refusal { return &refusal{message: fmt.Sprintf(format, args...)} }
	switch {
	case d.Code == "MISSING_SCOPE" || strings.HasPrefix(e.Message, "missing scope"):
		scope := d.Scope
		if scope == "" {
			scope = strings.TrimSpace(strings.TrimPrefix(e.Message, "missing scope:"))
		}
		return say("OpenClaw gives this device no scope %s; approve it there: openclaw devices list, openclaw devices approve", scope)
	case d.Code == "PAIRING_REQUIRED" || e.Code == "NOT_PAIRED" || strings.HasPrefix(e.Message, "pairing required"):
		return say("OpenClaw does not know this device yet; approve it there: openclaw devices list, openclaw devices approve")
	case e.isUnauthorized():
		return say("OpenClaw refuses the token: %s", e.Message)
	case d.Code == "PROTOCOL_MISMATCH" || e.Message == "protocol mismatch":
		return say("this OpenClaw speaks neither protocol %d nor %d: %s", minProtocol, maxProtocol, string(e.Details))
	}
	return nil
}

// temporary reports whether a request may be repeated, and after what time; 0 is nothing said.
func temporary(e *rpcError) (time.Duration, bool) {
	retryable := e.Retryable || e.RetryAfter > 0 || e.Code == "UNAVAILABLE" || e.Code == "RATE_LIMITED"
	return time.Duration(max(e.RetryAfter, 0)) * time.Millisecond, retryable
}

// shown is a failure as the agent reports it.
func agentError(err error) error {
	var a *agent.Error
	var refusalErr *refusal
	var rpc *rpcError
	switch {
	case errors.As(err, &a):
		return a
	case errors.As(err, &refusalErr) && refusalErr.certificate:
		return &agent.Error{Code: codeUnreachable, Message: "OpenClaw's certificate is not accepted", Detail: refusalErr.message}
	case errors.As(err, &refusalErr):
		return &agent.Error{Code: codeRefused, Message: "OpenClaw refuses the connection or the request", Detail: refusalErr.message}
	case errors.As(err, &rpc):
		_, retryable := temporary(rpc)
		return &agent.Error{Code: codeRequest, Message: "OpenClaw refuses the request", Detail: rpc.Message, Retryable: retryable}
	}
	return &agent.Error{Code: codeUnreachable, Message: call.WithCause("OpenClaw can't be reached", err), Detail: err.Error(), Retryable: true}
}
