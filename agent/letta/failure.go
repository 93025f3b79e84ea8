// The errors of this package: which of them may be retried, and what the person sees.

package letta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/internal/base/retry"
)

// Error codes of this agent's turns. Clients may compare them, so they never change.
const (
	codeUnreachable = "agent_unreachable"
	codeStatus      = "agent_status"
	codeToken       = "token_refused"
	codeUnknown     = "agent_unknown"
	codeRefused     = "agent_refused"
	codeBusy        = "agent_busy"
	codeCutShort    = "cut_short"
	codeGap         = "gap"
	codeLost        = "run_lost"
	codeTooLarge    = "too_large"
)

// tooLarge is the error of a turn whose stream exceeds base.maxStream.
var tooLarge = &agent.Error{Code: codeTooLarge, Message: agent.ErrTooLarge.Error()}

// failure is a request that failed before the server streamed anything of the turn. Such a request can be sent again.
type failure struct {
	code, message string
	detail        string        // shown to operators only
	status        int           // HTTP status; 0 if the server sent no HTTP response
	body          []byte        // start of the response body
	retryable     bool          // the same request may succeed later
	retryAfter    time.Duration // the pause that the server asked for; 0 if it named no pause
	err           error         // of the transport; nil if there was a response
}

func (f *failure) Error() string { return f.readerError().Error() }

// Cause returns the error of the transport. Failures don't wrap it, because the end of a request's context isn't that of the turn.
func (f *failure) Cause() error { return f.err }

// readerError converts the failure to the error that readers of the conversation get. The detail is for operators only.
func (f *failure) readerError() *agent.Error {
	return &agent.Error{Code: f.code, Message: f.message, Retryable: f.retryable, Detail: f.detail}
}

// readerError converts a *failure in err to the error for readers. It returns other errors unchanged.
func readerError(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.readerError()
	}
	return err
}

// connectFailure describes a request without a response. Everything but an untrusted certificate and an unknown content
// encoding is retryable: those two don't change by themselves, so repeating the request would only delay the error.
func connectFailure(err error) *failure {
	var encoded *call.EncodedError
	switch {
	case errors.As(err, &encoded):
		return &failure{code: codeStatus, message: "the Letta server's response can't be decoded: " + encoded.Error()}
	case call.IsUntrusted(err):
		return &failure{code: codeUnreachable, message: "the Letta server's certificate is not trusted", detail: call.Reason(err), err: err}
	}
	return &failure{code: codeUnreachable, message: call.WithCause("the Letta server can't be reached", err), detail: call.Reason(err), err: err, retryable: true}
}

// statusFailure describes a response whose status is not a success. Overload, conflicts and server errors are retryable, with
// the pause of the Retry-After header if there is one. It reads at most 16 KiB of the body and doesn't close it.
func statusFailure(res *http.Response) *failure {
	f := &failure{code: codeStatus, status: res.StatusCode, message: fmt.Sprintf("the Letta server returned %d %s", res.StatusCode, http.StatusText(res.StatusCode))}
	if res.Body != nil {
		f.body, _ = io.ReadAll(io.LimitReader(res.Body, 16<<10))
	}
	switch s := res.StatusCode; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		f.code, f.message = codeToken, "the Letta server refused the token ("+strconv.Itoa(s)+")"
		f.detail = "check the options token, token_env and token_file"
		return f
	case s == http.StatusNotFound:
		f.code = codeUnknown
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooEarly, s == http.StatusTooManyRequests,
		s >= 500 && s != http.StatusNotImplemented:
		f.retryable = true
		f.retryAfter = retry.After(res.Header.Get("Retry-After"), time.Now())
	}
	f.detail = excerpt(f.body)
	return f
}

// maxExcerpt limits the server's error text in an error's detail, in bytes.
const maxExcerpt = 200

// excerpt returns the error text of a response in one line, or "" if the body isn't Letta's JSON. Letta uses several forms:
// error, message, detail as a string, and detail as an object with a message.
func excerpt(body []byte) string {
	var v struct {
		Detail  json.RawMessage `json:"detail"`
		Error   string          `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &v) != nil {
		return ""
	}
	// detail is a string, an object with a message, or a list of validation errors, which is not shown.
	text := cmp.Or(v.Error, v.Message)
	var inner struct {
		Message string `json:"message"`
	}
	if text == "" && json.Unmarshal(v.Detail, &text) != nil && json.Unmarshal(v.Detail, &inner) == nil {
		text = inner.Message
	}
	return call.Line(text, maxExcerpt)
}

// maxCalls limits the attempts if the server sends no Retry-After header.
const maxCalls = 8

// retry calls try until it succeeds or fails for good: with an error that isn't retryable, after maxCalls attempts, or when the
// next attempt would come later than retryLimit after the first failure. The pause doubles each time; a pause that the server
// asked for has priority.
//
// While it waits the turn has the phase "retrying". If the turn's time runs out meanwhile, it ends with the last failure as its
// reason (Emitter.Trouble).
func (b *base) retry(ctx context.Context, emitter *agent.Emitter, try func() error) error {
	var begin time.Time
	pause := b.times.retryDelay
	for calls := 1; ; calls++ {
		err := try()
		var f *failure
		if !errors.As(err, &f) {
			if err == nil && !begin.IsZero() {
				emitter.Trouble(nil)
			}
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failedAt := time.Now()
		if begin.IsZero() {
			begin = failedAt
		}
		wait := pause
		pause *= 2
		if f.retryAfter > 0 {
			wait = f.retryAfter
		} else if calls >= maxCalls {
			return f
		}
		if !f.retryable || failedAt.Add(wait).Sub(begin) > b.times.retryLimit {
			return f
		}
		emitter.Log().Info("the request to the Letta server failed; retrying", "error", f.Error(), "in", wait.String())
		if err := emitter.Phase("retrying"); err != nil {
			return err
		}
		emitter.Trouble(f.readerError()) // after Phase, which counts as progress and would clear it
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// isStopped reports whether a user has stopped the turn. It is false if the turn is only interrupted by a restart of Leat.
func isStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), agent.ErrTurnOver) }
