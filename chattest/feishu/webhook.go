package feishu

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// challenge is what the webhook has to repeat.
const challenge = "ajls384kdjx98XX"

// webhook is where the bot receives events. Its fields are protected by the mutex of the server.
type webhook struct {
	address    string
	client     http.RoundTripper
	deliveries []Delivery
}

// Delivery is an event for the webhook. Event is its plain JSON. Status is that of the last attempt, and 0 if there was no answer.
type Delivery struct {
	ID       string
	Event    []byte
	Status   int
	Attempts int
}

// Subscribe makes an address the webhook of the app. It fails if the webhook doesn't repeat the challenge.
func (s *Server) Subscribe(address string, client http.RoundTripper) error {
	plain, err := json.Marshal(map[string]any{"challenge": challenge, "token": "verification", "type": "url_verification"})
	if err != nil {
		return err
	}
	r, err := s.Sign(address, plain)
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
	var answer struct {
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(body, &answer) != nil || response.StatusCode != http.StatusOK || answer.Challenge != challenge {
		return fmt.Errorf("feishu fake: the webhook answered the challenge with HTTP %d and %q", response.StatusCode, body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook.address, s.webhook.client = address, client
	return nil
}

// Sign returns the request for an event: encrypted, and signed.
func (s *Server) Sign(address string, plain []byte) (*http.Request, error) {
	encrypted, err := encrypt(s.opt.EncryptKey, plain)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]string{"encrypt": encrypted})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	timestamp, nonce := strconv.FormatInt(time.Now().Unix(), 10), "1234567"
	sum := sha256.Sum256([]byte(timestamp + nonce + s.opt.EncryptKey + string(body)))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("X-Lark-Request-Timestamp", timestamp)
	r.Header.Set("X-Lark-Request-Nonce", nonce)
	r.Header.Set("X-Lark-Signature", hex.EncodeToString(sum[:]))
	return r, nil
}

// encrypt encrypts a text with AES-256-CBC. The initialization vector stands before it.
func encrypt(key string, plain []byte) (string, error) {
	sum := sha256.Sum256([]byte(key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return "", err
	}
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	plain = append(slices.Clone(plain), bytes.Repeat([]byte{byte(padding)}, padding)...)
	sealed := make([]byte, aes.BlockSize+len(plain))
	if _, err := rand.Read(sealed[:aes.BlockSize]); err != nil {
		return "", err
	}
	cipher.NewCBCEncrypter(block, sealed[:aes.BlockSize]).CryptBlocks(sealed[aes.BlockSize:], plain)
	return base64.StdEncoding.EncodeToString(sealed), nil
}

// deliver sends an event to the webhook.
func (s *Server) deliver(kind string, event map[string]any) {
	s.mu.Lock()
	id := s.id("event_")
	header := map[string]any{
		"event_id": id, "event_type": kind, "create_time": strconv.FormatInt(time.Now().UnixMilli(), 10),
		"token": "verification", "app_id": s.opt.AppID,
		"tenant_key": "tenant",
	}
	plain, err := json.Marshal(map[string]any{"schema": "2.0", "header": header, "event": event})
	if err != nil {
		panic(err) // can't happen: maps of strings
	}
	s.webhook.deliveries = append(s.webhook.deliveries, Delivery{ID: id, Event: plain})
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
	if r, err := s.Sign(address, d.Event); err == nil {
		if response, err := client.RoundTrip(r); err == nil {
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
	for i, d := range s.Deliveries() {
		if d.Status != http.StatusOK {
			s.attempt(i)
		}
	}
}

// Repeat sends all events again, also those that were confirmed: the platform does that at times.
func (s *Server) Repeat() {
	for i := range s.Deliveries() {
		s.attempt(i)
	}
}

// Deliveries returns the events for the webhook.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.webhook.deliveries)
}
