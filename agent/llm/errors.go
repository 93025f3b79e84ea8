// The errors of model APIs, which say the same in many forms: which are temporary, and what the person sees.

package llm

import (
	"bytes"
	"cmp"
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

// The error codes of turns, described in docs/providers.md.
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
	codeRounds      = "tool_rounds"
)

// maxExcerpt limits the quoted text of a provider's error, in bytes.
const maxExcerpt = 400

// wireError is an error response: an object or a string under "error", or the fields of bare at the top level.
type wireError struct {
	Error  json.RawMessage `json:"error"`
	Detail json.RawMessage `json:"detail"`
	bare
}

// bare has the fields of an error object of any provider.
type bare struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Details []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// problem is an error response of any provider, reduced to the fields that classify needs.
type problem struct {
	kind    string        // its type, code and status, separated by spaces
	message string        // the provider's text
	hint    time.Duration // how long the provider asks to wait, or 0
}

// parse extracts the problem from an error body. Any body is accepted: HTML pages yield an empty problem, other text is the
// message.
func parse(body []byte) problem {
	// Gemini wraps the errors of streams in an array.
	body = bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("[")), []byte("]"))
	var w wireError
	if json.Unmarshal(body, &w) != nil {
		if bytes.HasPrefix(body, []byte("<")) {
			return problem{} // an HTML page of a proxy
		}
		return problem{message: string(body)}
	}
	b := w.bare
	if len(w.Error) > 0 {
		b = bare{}
		if json.Unmarshal(w.Error, &b) != nil && b.Message == "" {
			_ = json.Unmarshal(w.Error, &b.Message) // a string; any other form leaves the message empty
		}
	}
	if b.Message == "" && len(w.Detail) > 0 && json.Unmarshal(w.Detail, &b.Message) != nil {
		b.Message = string(w.Detail)
	}
	p := problem{kind: strings.Join([]string{b.Type, strings.Trim(string(b.Code), `"`), b.Status}, " "), message: b.Message}
	// Gemini puts the wait into the error's details instead of a header.
	for _, d := range b.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			p.hint = wait
		}
	}
	return p
}

// patterns lists substrings of error types and messages that identify the kind of an error whatever its status
// is: servers that imitate an API often have its error types, but other statuses. They are compared in lower
// case. The first match counts, so a pattern that is a part of another one's text must come later.
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

// classify returns the code of an error, and whether repeating the call may help. Patterns take precedence over
// the status, because providers use 400 and 429 for several kinds of errors. A status of 0 means an error
// inside a stream; its code is "" if no pattern matches.
func classify(status int, p problem) (code string, retry bool) {
	text := strings.ToLower(p.kind + " " + p.message)
	for _, s := range patterns {
		for _, w := range s.words {
			if !strings.Contains(text, w) {
				continue
			}
			if s.code == codeQuota && status == http.StatusTooManyRequests && p.hint > 0 {
				return codeLimited, true // a quota per time, which is refilled
			}
			return s.code, s.code == codeOverloaded || s.code == codeLimited
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
	case call.IsTransient(status):
		return codeProvider, true
	}
	return codeRefused, false
}

// message returns the text that readers see for an error code. It doesn't quote the provider, whose text may
// contain account data such as the name of the organization.
func (a *modelAgent) message(code string) string {
	texts := map[string]string{
		codeKeyRefused: a.name + " refused the key",
		codeModel:      fmt.Sprintf("%s does not know the model %s", a.name, a.cfg.Model),
		codeQuota:      "the quota at " + a.name + " is exceeded",
		codeTooLong:    fmt.Sprintf("the conversation is too long for %s", a.cfg.Model),
		codeOverloaded: a.name + " is overloaded",
		codeLimited:    a.name + " limits the rate of requests",
		codeRefused:    a.name + " refused the request",
	}
	return cmp.Or(texts[code], a.name+" failed")
}

// detail returns the text that operators see: the provider's message and, if the key was refused, the source of the key.
func (a *modelAgent) detail(code, message string) string {
	message = a.excerpt(message)
	if code != codeKeyRefused {
		return message
	}
	return strings.TrimPrefix(a.keyPlace()+": "+message, ": ")
}

// excerpt shortens a provider's message and masks the key, which some providers repeat.
func (a *modelAgent) excerpt(message string) string {
	if key := a.key(); key != "" {
		message = strings.ReplaceAll(message, key, "***") // before shortening, which could leave a part of the key
	}
	return call.Line(message, maxExcerpt)
}

// keyPlace returns where the key comes from.
func (a *modelAgent) keyPlace() string {
	switch {
	case a.cfg.Key != "":
		return "the key in " + a.cfg.KeyFrom
	case a.env == "":
		return "no key is configured; set token, token_env or token_file"
	}
	return "the key in " + a.env
}

// unreachable returns the failure for a request without a readable response. It is repeated unless repeating can't help: an
// unknown content encoding or an untrusted certificate.
func (a *modelAgent) unreachable(err error) *call.Failure {
	if encoded, ok := errors.AsType[*call.EncodedError](err); ok {
		return &call.Failure{Code: codeAnswer, Message: fmt.Sprintf("the response of %s is invalid: %v", a.name, encoded)}
	}
	if call.IsUntrusted(err) {
		return &call.Failure{Code: codeUnreachable, Message: "the certificate of " + a.name + " is not accepted", Detail: a.place + ": " + call.Reason(err), Err: err}
	}
	return &call.Failure{Code: codeUnreachable, Message: call.WithCause(a.name+" can't be reached", err), Detail: a.place + ": " + call.Reason(err), Err: err, Retry: true}
}

// statusFailure returns the failure for a response with an error status. It reads at most 64 KiB of the body.
// The header X-Should-Retry takes precedence over the classification: OpenAI and Anthropic send it, and their
// own clients obey it.
func (a *modelAgent) statusFailure(res *http.Response) *call.Failure {
	if res.StatusCode/100 == 3 {
		return &call.Failure{Code: codeRefused, Message: fmt.Sprintf("%s responded with a redirect (%d), which is not followed", a.name, res.StatusCode), Detail: "set base_url to the final address"}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		body = nil // the status is enough to classify the error
	}
	p := parse(body)
	if hint := retryHint(res.Header, time.Now()); hint > 0 {
		p.hint = hint
	}
	code, retry := classify(res.StatusCode, p)
	// OpenAI and Anthropic send this header; their own clients follow it too.
	switch res.Header.Get("X-Should-Retry") {
	case "true":
		retry = true
	case "false":
		retry = false
	}
	p.message = cmp.Or(p.message, strings.TrimSpace(strconv.Itoa(res.StatusCode)+" "+http.StatusText(res.StatusCode)))
	return &call.Failure{Code: code, Message: a.message(code), Detail: a.detail(code, p.message), Retry: retry, Hint: p.hint}
}

// retryHint returns how long the provider asks to wait before the next call, or 0. Retry-After-Ms is OpenAI's more precise form
// of Retry-After.
func retryHint(h http.Header, receivedAt time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	return retry.After(h.Get("Retry-After"), receivedAt)
}

// inStreamFailure returns the failure for an error inside a stream. If no pattern matches, the decoder's code
// and its judgment whether the error is temporary are used.
func (a *modelAgent) inStreamFailure(e *event.Error) *call.Failure {
	code, retry := classify(0, problem{kind: e.Code, message: e.Message})
	return &call.Failure{
		Code: cmp.Or(code, e.Code, codeProvider), Message: a.message(code), Detail: a.detail(code, e.Message), Retry: retry || code == "" && e.Retryable,
	}
}
