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

// Codes of the errors with which a turn fails. They are part of the protocol: clients may compare them.
const (
	codeUnreachable = "agent_unreachable" // no response
	codeStatus      = "agent_status"      // a status other than 2xx
	CodeAnswer      = "agent_answer"      // a response of another type or encoding
	CodeCutShort    = "cut_short"         // the stream ended before the turn
	CodeTooLarge    = "too_large"         // the stream exceeds [agent.MaxStream]
)

// Failure is the error of a failed request. [Repeat] retries it if Retry is set; otherwise, or when the retries
// are exhausted, it becomes the turn's error. Message is for viewers, so it has no address and no text of the
// upstream.
type Failure struct {
	Code, Message string
	Detail        string        // only for operators; see [agent.Error]
	Retry         bool          // nothing was emitted, and another request may succeed
	Retryable     bool          // the user may send the message again
	Hint          time.Duration // pause before the retry that the upstream asked for; 0 if it didn't
	Status        int           // HTTP status of an error response; 0 if the request failed otherwise
	Err           error         // of the transport, for operators; nil if there was a response
	ResetRetries  bool          // there was progress since the previous failure, so the limits on retries start again
}

func (f *Failure) Error() string { return f.AgentError().Error() }

// Cause returns the error of the transport. Failures don't wrap it, because the end of a request's context isn't that of the turn.
func (f *Failure) Cause() error { return f.Err }

// AgentError returns the failure as the error of the turn. The message ends with the pause that the upstream asked for, if any.
func (f *Failure) AgentError() *agent.Error {
	e := &agent.Error{Code: f.Code, Message: f.Message, Retryable: f.Retry || f.Retryable, Detail: f.Detail}
	if f.Hint > 0 {
		e.Message += "; try again in " + pause(f.Hint)
	}
	return e
}

// pause formats a duration, rounded up to whole seconds, such as "90s", "10m" or "1h30m".
func pause(d time.Duration) string {
	d = (d + time.Second - 1).Truncate(time.Second)
	if d <= 2*time.Minute {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(d.String())
}

// Unreachable describes a request that failed without a readable response. It is retried, except for an
// untrusted certificate or an unsupported encoding, which only an operator can change. Operators also see the
// text of the error, without the URL.
func Unreachable(err error) *Failure {
	if encoded, ok := errors.AsType[*EncodedError](err); ok {
		return &Failure{Code: CodeAnswer, Message: "the agent sent an invalid response: " + encoded.Error()}
	}
	if IsUntrusted(err) {
		return &Failure{Code: codeUnreachable, Message: "the agent's certificate is not accepted", Detail: Reason(err), Err: err}
	}
	return &Failure{Code: codeUnreachable, Message: WithCause("the agent can't be reached", err), Detail: Reason(err), Err: err, Retry: true}
}

// IsUntrusted reports whether a request failed because the server's certificate is invalid or the server doesn't speak TLS.
func IsUntrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.CertificateInvalidError)) ||
		errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError)) || errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, http.ErrSchemeMismatch)
}

// BrokenStream describes a response that broke off. It is retried only if nothing of it was emitted, since a second request would
// repeat the output.
func BrokenStream(hasOutput bool) *Failure {
	return &Failure{Code: CodeCutShort, Message: "the connection to the agent broke in the middle of its answer", Retry: !hasOutput, Retryable: true}
}

// maxExcerpt is the maximum length of the text of an upstream's error that operators see, in bytes.
const maxExcerpt = 200

// StatusFailure describes a response with a status other than 2xx.
func StatusFailure(res *http.Response) *Failure {
	f := &Failure{Code: codeStatus, Status: res.StatusCode, Message: fmt.Sprintf("the agent answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))}
	switch {
	case res.StatusCode/100 == 3:
		f.Message += ", a redirect; redirects are not followed"
		f.Detail = "configure the address to which the agent redirects"
		return f
	case IsTransient(res.StatusCode):
		f.Retry = true
		f.Hint = retry.After(res.Header.Get("Retry-After"), time.Now())
	}
	f.Detail = excerpt(res)
	return f
}

// excerpt returns the error text of a response as one line: the first string among the keys error, message,
// detail and title of a JSON object, or the first line of a plain text. For other types it is empty, since an
// HTML page doesn't help. It reads at most 4 KiB, and only operators see the text.
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

// IsTransient reports whether another request may succeed after a response with this status: 408, 425, 429, and
// 5xx except the two that say what the server can't do at all.
func IsTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// Line returns the first line of a text without control characters, cut to at most limit bytes plus an ellipsis. It never cuts within a
// character.
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

// Reason returns the text of a transport error without the URL, whose query may contain secrets.
func Reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return err.Error()
}
