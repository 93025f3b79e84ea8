package whatsapp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// challenge is what the webhook has to repeat.
const challenge = "1158201444"

// webhook is where the bot receives events. Its fields are protected by the mutex of the server.
type webhook struct {
	address    string
	client     http.RoundTripper
	deliveries []Delivery
}

// Delivery is an event for the webhook. Key is the id of the message, or the id and the status of one. Status is that of the last
// attempt, and 0 if there was no answer.
type Delivery struct {
	Key      string
	Body     []byte
	Status   int
	Attempts int
}

// Subscribe makes an address the webhook of the number. It fails if the webhook doesn't repeat the challenge.
func (s *Server) Subscribe(address string, client http.RoundTripper) error {
	query := url.Values{"hub.mode": {"subscribe"}, "hub.verify_token": {s.opt.VerifyToken}, "hub.challenge": {challenge}}
	r, err := http.NewRequest(http.MethodGet, address+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.RoundTrip(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || string(body) != challenge {
		return fmt.Errorf("whatsapp fake: the webhook answered the verification with HTTP %d and %q", response.StatusCode, body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook.address, s.webhook.client = address, client
	return nil
}

// deliver sends an event to the webhook.
func (s *Server) deliver(key string, value map[string]any) {
	value["messaging_product"] = "whatsapp"
	value["metadata"] = map[string]any{"display_phone_number": strings.TrimPrefix(s.opt.Phone, "+"), "phone_number_id": s.opt.Number}
	change := map[string]any{"field": "messages", "value": value}
	entry := map[string]any{"id": "102290129340398", "changes": []any{change}}
	body, err := json.Marshal(map[string]any{"object": "whatsapp_business_account", "entry": []any{entry}})
	if err != nil {
		panic(err) // can't happen: maps of strings
	}
	s.mu.Lock()
	s.webhook.deliveries = append(s.webhook.deliveries, Delivery{Key: key, Body: escape(body)})
	i := len(s.webhook.deliveries) - 1
	s.mu.Unlock()
	s.attempt(i)
}

// attempt sends a delivery.
func (s *Server) attempt(i int) {
	s.mu.Lock()
	d, address, client := s.webhook.deliveries[i], s.webhook.address, s.webhook.client
	s.mu.Unlock()
	if client == nil {
		return
	}
	status := 0
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(d.Body))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Hub-Signature-256", s.Sign(d.Body))
		response, err := client.RoundTrip(r)
		if err == nil {
			status = response.StatusCode
			_ = response.Body.Close() // nothing is expected in it
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook.deliveries[i].Status = status
	s.webhook.deliveries[i].Attempts++
}

// Redeliver sends the events again that the webhook has not confirmed.
func (s *Server) Redeliver() {
	s.attemptAll(func(d Delivery) bool { return d.Status != http.StatusOK })
}

// Repeat sends an event again that the webhook may have confirmed: the platform does that at times.
func (s *Server) Repeat(key string) { s.attemptAll(func(d Delivery) bool { return d.Key == key }) }

// attemptAll sends the deliveries again that a condition selects.
func (s *Server) attemptAll(is func(Delivery) bool) {
	for i, d := range s.Deliveries() {
		if is(d) {
			s.attempt(i)
		}
	}
}

// Deliveries returns the events for the webhook.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.webhook.deliveries)
}

// Sign returns the signature of a body.
func (s *Server) Sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(s.opt.AppSecret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// escape writes JSON as the platform does: with ASCII characters only, in lower case, and with escaped slashes.
func escape(body []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(body) {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r < 0x80:
			b.WriteRune(r)
		default:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		}
	}
	return b.Bytes()
}
