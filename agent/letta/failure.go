package letta

import (
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

// The codes of the errors that turns of this agent end with.
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

// tooLarge ends a turn that says more than anybody reads.
var tooLarge = &agent.Error{Code: codeTooLarge, Message: agent.ErrTooLarge.Error()}

// failure is a call that failed before anything was said.
type failure struct {
	code, message string
	detail        string        // for operators alone
	status        int           // of HTTP; 0 is none
	body          []byte        // of the answer
	retryable     bool          // another call may go well
	retryAfter    time.Duration // when, as the server said; 0 is nothing said
}

func (f *failure) Error() string { return f.readerError().Error() }

// readerError is the failure as readers get it.
func (f *failure) readerError() *agent.Error {
	return &agent.Error{Code: f.code, Message: f.message, Retryable: f.retryable, Detail: f.detail}
}

// readerError makes a failure readable; other errors stay as they are.
func readerError(err error) error {
	var f *failure
	if errors.As(err, &f) {
		return f.readerError()
	}
	return err
}

// connectFailure describes a call that did not get through. Wrong certificates and encodings don't change by themselves, so it is not
// repeated for them.
func connectFailure(err error) *failure {
	var encoded *call.EncodedError
	switch {
	case errors.As(err, &encoded):
		return &failure{code: codeStatus, message: "the Letta server's answer can't be read: " + encoded.Error()}
	case call.Untrusted(err):
		return &failure{code: codeUnreachable, message: "the Letta server's certificate is not accepted", detail: call.Reason(err)}
	}
	return &failure{code: codeUnreachable, message: call.WithCause("the Letta server can't be reached", err), detail: call.Reason(err), retryable: true}
}

// statusFailure describes an answer that is no success.
func statusFailure(res *http.Response) *failure {
	f := &failure{code: codeStatus, status: res.StatusCode, message: fmt.Sprintf("the Letta server answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))}
	if res.Body != nil {
		f.body, _ = io.ReadAll(io.LimitReader(res.Body, 16<<10))
	}
	switch s := res.StatusCode; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		f.code, f.message = codeToken, "the Letta server refuses the token ("+strconv.Itoa(s)+")"
		f.detail = "see the options token, token_env and token_file"
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

// maxExcerpt bounds what is told of an error answer, in bytes of text.
const maxExcerpt = 200

// excerpt is what an error answer says, in one line.
func excerpt(body []byte) string {
	var v struct {
		Detail  json.RawMessage `json:"detail"`
		Error   string          `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &v) != nil {
		return ""
	}
	text := v.Error
	if text == "" {
		text = v.Message
	}
	var inner struct {
		Message string `json:"message"`
	}
	if text == "" && json.Unmarshal(v.Detail, &text) != nil && json.Unmarshal(v.Detail, &inner) == nil {
		text = inner.Message
	}
	return call.Line(text, maxExcerpt)
}

// maxCalls bounds the calls to a server that says nothing of when to come back.
const maxCalls = 8

// retry repeats try until it succeeds, fails in a way that no repetition mends, or the time is over. A turn that ends for its silence
// meanwhile ends with the reason of the last failure.
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
		emitter.Log().Info("the Letta server failed; it is called again", "error", f.Error(), "in", wait.String())
		if err := emitter.Phase("retrying"); err != nil {
			return err
		}
		emitter.Trouble(f.readerError()) // after the phase, which is progress
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// isStopped reports whether the turn was ended, and not only left.
func isStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), agent.ErrTurnOver) }
