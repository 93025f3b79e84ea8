package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// envelope is something that the bot gets and has to acknowledge.
type envelope struct {
	id       string
	kind     string // events_api, interactive or slash_commands
	payload  map[string]any
	attempts int
	holder   *connection // that has got it, or nil
	due      time.Time   // when the acknowledgement is late
}

// notify delivers an event of the Events API. mu must be locked.
func (s *Server) notify(event map[string]any) {
	at := time.Now()
	s.send("events_api", map[string]any{
		"token": "unused", "team_id": team, "api_app_id": "A1", "type": "event_callback", "event": event,
		"event_id": fmt.Sprintf("Ev%06d", s.number()), "event_time": at.Unix(),
		"authorizations": []any{map[string]any{"team_id": team, "user_id": s.opt.BotUser, "is_bot": true}},
	})
}

// send queues an envelope. mu must be locked.
func (s *Server) send(kind string, payload map[string]any) {
	s.envelopes = append(s.envelopes, &envelope{id: fmt.Sprintf("envelope-%d", s.number()), kind: kind, payload: payload})
	s.wake()
}

// NextRequest returns the oldest thing that happened as a signed request of the Events API, or nil if all was delivered. It is
// not delivered again.
func (s *Server) NextRequest(target string) *http.Request {
	s.mu.Lock()
	i := slices.IndexFunc(s.envelopes, func(e *envelope) bool { return e.holder == nil })
	if i < 0 {
		s.mu.Unlock()
		return nil
	}
	e := s.envelopes[i]
	s.envelopes = slices.Delete(s.envelopes, i, i+1)
	s.mu.Unlock()
	raw, err := json.Marshal(e.payload)
	if err != nil {
		panic(err) // can't happen: payloads consist of maps and texts
	}
	switch e.kind {
	case "interactive":
		return s.Sign(target, "application/x-www-form-urlencoded", []byte(url.Values{"payload": {string(raw)}}.Encode()), time.Now())
	case "slash_commands":
		form := url.Values{}
		for key, value := range e.payload {
			form.Set(key, fmt.Sprint(value))
		}
		return s.Sign(target, "application/x-www-form-urlencoded", []byte(form.Encode()), time.Now())
	}
	return s.Sign(target, "application/json", raw, time.Now())
}

// Challenge returns the signed request with which Slack checks a new address. The answer has to contain the challenge.
func (s *Server) Challenge(target, challenge string) *http.Request {
	raw, err := json.Marshal(map[string]any{"type": "url_verification", "token": "unused", "challenge": challenge})
	if err != nil {
		panic(err) // can't happen
	}
	return s.Sign(target, "application/json", raw, time.Now())
}

// Sign returns a request with a body and the signature that Slack would give it at a time.
func (s *Server) Sign(target, contentType string, body []byte, at time.Time) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(string(body)))
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.opt.SigningSecret))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // never fails
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r
}
