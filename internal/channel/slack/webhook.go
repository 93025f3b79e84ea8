package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

const (
	// maxBody limits the body of a request of Slack, in bytes.
	maxBody = 1 << 20
	// maxAge is how old the signature of a request may be. An older one could be a repetition by an attacker. The documentation
	// recommends five minutes, in both directions because clocks differ.
	maxAge = 5 * time.Minute
)

var _ channel.WebhookChannel = (*bot)(nil)

// ServeWebhook implements [channel.WebhookChannel]. It answers a request of Slack: an event, a pressed button or a slash command. Slack
// repeats a request without a success. The message is stored before the answer, so a message that was confirmed isn't lost. Slack
// expects the answer within three seconds.
func (c *bot) ServeWebhook(w http.ResponseWriter, r *http.Request, inbox channel.Inbox) {
	if r.Method != http.MethodPost {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return
	}
	// The signature covers the bytes of the body, so it is checked before anything is decoded.
	if !c.isSigned(r.Header, body, time.Now()) {
		http.Error(w, "invalid signature", http.StatusUnauthorized)
		return
	}
	kind, payload, err := payloadOf(r.Header, body)
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return
	}
	if kind == "events_api" {
		var e callback
		if err := json.Unmarshal(payload, &e); err != nil {
			http.Error(w, "the event can't be read", http.StatusBadRequest)
			return
		}
		if e.Type == "url_verification" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, e.Challenge) // the client has gone
			return
		}
	}
	self := c.account.Load()
	// Without its ids the bot would not recognize a mention. Slack repeats the request in a moment.
	if self == nil {
		http.Error(w, "the bot is starting", http.StatusServiceUnavailable)
		return
	}
	m, ok, err := c.parse(r.Context(), self, kind, payload)
	if err != nil {
		http.Error(w, "the event can't be read", http.StatusBadRequest)
		return
	}
	if ok {
		if err := inbox.Receive(r.Context(), m); err != nil {
			c.log.Error("a message of Slack can't be stored", "error", err)
			http.Error(w, "the message can't be stored", http.StatusServiceUnavailable)
			return
		}
	}
	w.WriteHeader(http.StatusOK) // an empty answer to a command shows nothing
}

// isSigned checks the signature of a request. The comparison takes the same time wherever the first difference is.
func (c *bot) isSigned(h http.Header, body []byte, at time.Time) bool {
	stamp := h.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || c.secret == "" {
		return false
	}
	if age := at.Sub(time.Unix(seconds, 0)); age > maxAge || age < -maxAge {
		return false
	}
	mac := hmac.New(sha256.New, []byte(c.secret))
	_, _ = fmt.Fprintf(mac, "v0:%s:", stamp) // never fails, nor does the next one
	_, _ = mac.Write(body)
	return hmac.Equal([]byte(h.Get("X-Slack-Signature")), []byte("v0="+hex.EncodeToString(mac.Sum(nil))))
}

// payloadOf returns the kind of a request, as envelopes of Socket Mode name it, and its payload as JSON. Events are JSON. Buttons and
// commands are forms, which differ by the field payload.
func payloadOf(h http.Header, body []byte) (kind string, payload []byte, err error) {
	contentType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return "", nil, err
	}
	if contentType == "application/json" {
		return "events_api", body, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", nil, err
	}
	if form.Has("payload") {
		return "interactive", []byte(form.Get("payload")), nil
	}
	fields := map[string]string{}
	for key := range form {
		fields[key] = form.Get(key)
	}
	payload, err = json.Marshal(fields)
	return "slash_commands", payload, err
}
