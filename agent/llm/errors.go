package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
)

// The codes of the errors that turns of these agents end with.
const (
	codeKeyMissing  = "key_missing"
	codeKeyRefused  = "key_refused"
	codeModel       = "model_unknown"
	codeQuota       = "quota"
	codeTooLong     = "context_too_long"
	codeOverloaded  = "overloaded"
	codeLimited     = "rate_limited"
	codeRefused     = "request_refused"
	codeUnreachable = "provider_unreachable"
	codeProvider    = "provider_error"
	codeAnswer      = "provider_answer"
	codeCutShort    = "cut_short"
	codeTooLarge    = "too_large"
	codeGone        = "response_gone"
)

// maxExcerpt bounds what is told of a provider's error, in bytes.
const maxExcerpt = 400

// wireError is an error as providers write it: an object under "error", or a text.
type wireError struct {
	Error  json.RawMessage `json:"error"`
	Detail json.RawMessage `json:"detail"`
	bare
}

type bare struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Details []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// problem is what an error says.
type problem struct {
	kind    string // all that it calls itself
	message string
	hint    time.Duration
}

// parse reads an error's body, which may be anything.
func parse(body []byte) problem {
	// Gemini wraps the errors of streams in an array.
	body = bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("[")), []byte("]"))
	var w wireError
	if json.Unmarshal(body, &w) != nil {
		if bytes.HasPrefix(body, []byte("<")) {
			return problem{} // a page for people
		}
		return problem{message: string(body)}
	}
	b := w.bare
	if len(w.Error) > 0 {
		b = bare{}
		if json.Unmarshal(w.Error, &b) != nil && b.Message == "" {
			_ = json.Unmarshal(w.Error, &b.Message) // a text, or nothing that is known
		}
	}
	if b.Message == "" && len(w.Detail) > 0 && json.Unmarshal(w.Detail, &b.Message) != nil {
		b.Message = string(w.Detail)
	}
	p := problem{kind: strings.Join([]string{b.Type, strings.Trim(string(b.Code), `"`), b.Status}, " "), message: b.Message}
	for _, d := range b.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			p.hint = wait
		}
	}
	return p
}

// signs are words by which errors are known, whatever their status is. The first that fits counts.
var patterns = []struct {
	code  string
	words []string
}{
	{codeTooLong, []string{
		"context_length_exceeded", "prompt is too long", "maximum context length", "exceeds the maximum number of tokens",
		"context window", "exceed_context_size", "request_too_large", "available context size",
	}},
	{codeKeyRefused, []string{"invalid_api_key", "authentication_error", "api key not valid", "incorrect api key", "unauthenticated", "permission_denied", "permission_error"}},
	{codeQuota, []string{"insufficient_quota", "credit balance", "exceeded your current quota", "billing_error", "insufficient credits", "payment_required"}},
	{codeModel, []string{"model_not_found", "not_found_error", "does not exist or you do not have access", "is not found for api version", "try pulling it first"}},
	{codeOverloaded, []string{"overloaded", "at capacity"}},
	{codeLimited, []string{"rate_limit", "rate limit", "resource_exhausted", "too many requests"}},
}

// passing are the codes that another call may not meet.
var passing = map[string]bool{codeOverloaded: true, codeLimited: true}

// judge says what an error of a status comes to; 0 is the status of one inside a stream.
func judge(status int, p problem) (code string, retry bool) {
	text := strings.ToLower(p.kind + " " + p.message)
	for _, s := range patterns {
		for _, w := range s.words {
			if !strings.Contains(text, w) {
				continue
			}
			if s.code == codeQuota && status == http.StatusTooManyRequests && p.hint > 0 {
				return codeLimited, true // a quota that fills up again
			}
			return s.code, passing[s.code]
		}
	}
	switch {
	case status == 0:
		return "", false
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return codeKeyRefused, false
	case status == http.StatusPaymentRequired:
		return codeQuota, false
	case status == http.StatusNotFound:
		return codeModel, false
	case status == http.StatusRequestEntityTooLarge:
		return codeTooLong, false
	case status == http.StatusTooManyRequests:
		return codeLimited, true
	case status == http.StatusServiceUnavailable, status == 529:
		return codeOverloaded, true
	case call.Passing(status):
		return codeProvider, true
	}
	return codeRefused, false
}

// tell is the kind of a failure in words for readers.
func (a *modelAgent) message(code string) string {
	text := map[string]string{
		codeKeyRefused: a.name + " refuses the key",
		codeModel:      fmt.Sprintf("%s does not know the model %s", a.name, a.cfg.Model),
		codeQuota:      "the quota at " + a.name + " is used up",
		codeTooLong:    fmt.Sprintf("the conversation is too long for %s", a.cfg.Model),
		codeOverloaded: a.name + " is overloaded",
		codeLimited:    a.name + " limits the rate of calls",
		codeRefused:    a.name + " refuses the request",
		codeProvider:   a.name + " failed",
	}[code]
	if text == "" {
		text = a.name + " failed"
	}
	return text
}

// detail is a failure for operators: what the provider said of it, and where the key comes from if that was refused.
func (a *modelAgent) detail(code, message string) string {
	message = a.excerpt(message)
	if code != codeKeyRefused {
		return message
	}
	return strings.TrimPrefix(a.keyPlace()+": "+message, ": ")
}

// excerpt is what a provider says of an error, short and without the key.
func (a *modelAgent) excerpt(message string) string {
	if key := a.key(); key != "" {
		message = strings.ReplaceAll(message, key, "***") // before it is cut, which may be in the middle of it
	}
	return call.Line(message, maxExcerpt)
}

func (a *modelAgent) keyPlace() string {
	switch {
	case a.cfg.Key != "":
		return "the key in " + a.cfg.KeyFrom
	case a.env == "":
		return "no key is given; see the options token, token_env and token_file"
	}
	return "the key in " + a.env
}

// unreachable describes a request without an answer that can be read.
func (a *modelAgent) unreachable(err error) *call.Failure {
	var encoded *call.EncodedError
	switch {
	case errors.As(err, &encoded):
		return &call.Failure{Code: codeAnswer, Message: fmt.Sprintf("the answer of %s can't be read: %v", a.name, encoded)}
	case call.Untrusted(err):
		return &call.Failure{Code: codeUnreachable, Message: "the certificate of " + a.name + " is not accepted", Detail: a.place + ": " + call.Reason(err)}
	}
	return &call.Failure{Code: codeUnreachable, Message: call.WithCause(a.name+" can't be reached", err), Detail: a.place + ": " + call.Reason(err), Retry: true}
}

// refused describes an answer that is no success.
func (a *modelAgent) statusFailure(res *http.Response) *call.Failure {
	if res.StatusCode/100 == 3 {
		return &call.Failure{Code: codeRefused, Message: fmt.Sprintf("%s answered %d, a redirect, which is not followed", a.name, res.StatusCode), Detail: "base_url has to be the final address"}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		body = nil // the status says enough
	}
	p := parse(body)
	if hint := hinted(res.Header, time.Now()); hint > 0 {
		p.hint = hint
	}
	code, retry := judge(res.StatusCode, p)
	switch res.Header.Get("X-Should-Retry") {
	case "true":
		retry = true
	case "false":
		retry = false
	}
	if p.message == "" {
		p.message = strings.TrimSpace(strconv.Itoa(res.StatusCode) + " " + http.StatusText(res.StatusCode))
	}
	return &call.Failure{Code: code, Message: a.message(code), Detail: a.detail(code, p.message), Retry: retry, Hint: p.hint}
}

// hinted is when the provider wants to be called again, by its headers.
func hinted(h http.Header, receivedAt time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	return retry.After(h.Get("Retry-After"), receivedAt)
}

// inside judges an error that a stream tells.
func (a *modelAgent) inStreamFailure(e *event.Error) *call.Failure {
	code, retry := judge(0, problem{kind: e.Code, message: e.Message})
	f := &call.Failure{Code: code, Message: a.message(code), Detail: a.detail(code, e.Message), Retry: retry || code == "" && e.Retryable}
	if code == "" {
		f.Code = e.Code
		if f.Code == "" {
			f.Code = codeProvider
		}
	}
	return f
}
