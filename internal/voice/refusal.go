package voice

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// maxRefusal limits how much of an error's body is read, and maxDetail how much of its message is shown, both in bytes.
	maxRefusal = 16 << 10
	maxDetail  = 300
	// maxRetryAfter limits how long a service may ask to wait. A day is longer than all quotas but those of a month.
	maxRetryAfter = 24 * time.Hour
)

// Refusal returns the failure of a response with an error status. Occurrences of the API key in the service's text are masked.
func Refusal(service, engine, key string, resp *http.Response) *Failure {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what arrived is enough for a message
	code, message := explain(body)
	f := &Failure{Service: service, Engine: engine, Reason: reasonOf(resp.StatusCode, code), Status: resp.StatusCode}
	if f.Reason == RateLimit || f.Reason == Unavailable {
		f.RetryAfter = min(retry.After(resp.Header.Get("Retry-After"), time.Now()), maxRetryAfter)
	}
	f.Detail = message
	if f.Reason == Credentials {
		f.Detail = code // messages about keys quote parts of them
	}
	f.Detail = Detail(f.Detail, key)
	return f
}

// reasonOf maps a status and the service's own code.
func reasonOf(status int, code string) Reason {
	isQuota := strings.Contains(code, "quota") || strings.Contains(code, "credit") || strings.Contains(code, "billing")
	switch {
	case status == http.StatusPaymentRequired, isQuota: // ElevenLabs sends 401 with quota_exceeded, OpenAI 429 with insufficient_quota
		return Quota
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Credentials
	case status == http.StatusTooManyRequests:
		return RateLimit
	case status >= 500, status == http.StatusRequestTimeout:
		return Unavailable
	}
	return Rejected
}

// explain returns the code and the message of an error's body, in any of the forms that the services use:
//
//	{"error": {"message", "code", "type"}}        OpenAI
//	{"error": "text"}, {"message", "error_code"}  Cartesia, Kokoro
//	{"detail": {"status", "message"}}             ElevenLabs
//	{"detail": "text" or a list}                  FastAPI
//	{"err_code", "err_msg"}                       Deepgram
func explain(body []byte) (code, message string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return "", string(body)
	}
	for _, name := range []string{"error", "detail"} {
		var inner map[string]json.RawMessage
		if json.Unmarshal(fields[name], &inner) == nil && inner != nil {
			fields = inner
			break
		}
	}
	code = strings.ToLower(text(fields, "code", "status", "err_code", "error_code", "type"))
	return code, text(fields, "message", "err_msg", "error", "detail", "title")
}

// text returns the first field of the names that is a text, or a list as its JSON.
func text(fields map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(fields[name], &s) == nil && s != "" {
			return s
		}
		if raw := fields[name]; len(raw) > 0 && raw[0] == '[' {
			return string(raw)
		}
	}
	return ""
}

// Detail makes a text of a service one short line, and masks the API key in it, unless the key is empty.
func Detail(s, key string) string {
	if key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	s = strings.TrimSpace(process.Clean(s))
	if len(s) > maxDetail {
		s = strings.ToValidUTF8(s[:maxDetail], "") + "…"
	}
	return s
}
