package call

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

// The codes of the errors that turns of this agent end with.
const (
	CodeUnreachable = "agent_unreachable"
	CodeStatus      = "agent_status"
	CodeAnswer      = "agent_answer"
	CodeCutShort    = "cut_short"
	CodeTooLarge    = "too_large"
)

// Failure is a call that failed.
type Failure struct {
	Code, Message string
	Detail        string        // for operators alone, see [agent.Error]
	Retry         bool          // nothing was said, and another call may go well
	Retryable     bool          // somebody may ask again
	Hint          time.Duration // when, as the agent said; 0 is nothing said
	Status        int           // of an answer that is no success
	ResetRetries  bool          // something came since the failure before: the time for retries begins anew
}

func (f *Failure) Error() string { return f.AgentError().Error() }

// AgentError returns the failure as the error of the turn. The message ends with the pause that the upstream asked for, if any.
func (f *Failure) AgentError() *agent.Error {
	e := &agent.Error{Code: f.Code, Message: f.Message, Retryable: f.Retry || f.Retryable, Detail: f.Detail}
	if f.Hint > 0 {
		e.Message += "; try again in " + pause(f.Hint)
	}
	return e
}

// pause is a duration in words, in whole seconds, such as "90s", "10m" or "1h30m".
func pause(d time.Duration) string {
	d = (d + time.Second - 1).Truncate(time.Second)
	if d <= 2*time.Minute {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Unreachable describes a request without an answer that can be read. Wrong certificates and encodings don't change by themselves, so
// it is not repeated for them.
func Unreachable(err error) *Failure {
	var encoded *EncodedError
	switch {
	case errors.As(err, &encoded):
		return &Failure{Code: CodeAnswer, Message: "the agent's answer can't be read: " + encoded.Error()}
	case IsUntrusted(err):
		return &Failure{Code: CodeUnreachable, Message: "the agent's certificate is not accepted", Detail: Reason(err)}
	}
	return &Failure{Code: CodeUnreachable, Message: WithCause("the agent can't be reached", err), Detail: Reason(err), Retry: true}
}

// IsUntrusted reports whether a request failed for the server's certificate, or because the server doesn't speak TLS.
func IsUntrusted(err error) bool {
	var (
		verify  *tls.CertificateVerificationError
		invalid x509.CertificateInvalidError
		signer  x509.UnknownAuthorityError
		name    x509.HostnameError
		plain   tls.RecordHeaderError
	)
	return errors.As(err, &verify) || errors.As(err, &invalid) || errors.As(err, &signer) || errors.As(err, &name) || errors.As(err, &plain)
}

// BrokenStream describes a response that broke off. It is retried only if nothing of it was emitted, since a second request would repeat the output.
func BrokenStream(hasOutput bool) *Failure {
	return &Failure{Code: CodeCutShort, Message: "the connection to the agent broke in the middle of its answer", Retry: !hasOutput, Retryable: true}
}

// maxExcerpt bounds what is told of an agent's error answer, in bytes of text.
const maxExcerpt = 200

// StatusFailure describes a response with a status other than 2xx.
func StatusFailure(res *http.Response) *Failure {
	f := &Failure{Code: CodeStatus, Status: res.StatusCode, Message: fmt.Sprintf("the agent answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))}
	switch {
	case res.StatusCode/100 == 3:
		f.Message += ", a redirect, which is not followed"
		f.Detail = "give the agent's final address"
		return f
	case IsTransient(res.StatusCode):
		f.Retry = true
		f.Hint = retry.After(res.Header.Get("Retry-After"), time.Now())
	}
	f.Detail = excerpt(res)
	return f
}

// excerpt is what an error answer says, in one line: the "error" or "message" of a JSON object, else plain text.
func excerpt(res *http.Response) string {
	b, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err != nil {
		return ""
	}
	text := ""
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/json", "application/problem+json":
		var body map[string]json.RawMessage
		if json.Unmarshal(b, &body) != nil {
			return ""
		}
		for _, key := range []string{"error", "message", "detail", "title"} {
			if json.Unmarshal(body[key], &text) == nil && text != "" {
				break
			}
		}
	case "text/plain":
		text = string(b)
	}
	return Line(text, maxExcerpt)
}

// IsTransient reports whether another request may succeed after a response with this status.
func IsTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// Line is the first line of a text, without control characters and cut to a number of bytes.
func Line(text string, limit int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "�")), "\n")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > limit {
		end := limit
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return text
}

// Reason is a transport's error without the URL, which may hold secrets in its query.
func Reason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}
