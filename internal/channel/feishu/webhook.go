package feishu

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/leat-dev/leat/internal/channel"
)

// maxWebhook limits the body of a request to the webhook, in bytes. A message has up to 150 KB, before it is encrypted.
const maxWebhook = 2 << 20

// ServeWebhook implements [channel.WebhookChannel].
func (c *bot) ServeWebhook(w http.ResponseWriter, r *http.Request, inbox channel.Inbox) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhook))
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return
	}
	e, err := c.open(body)
	if err != nil {
		http.Error(w, "invalid signature", http.StatusUnauthorized) // the same text as below, so that it doesn't reveal what can be decrypted
		return
	}
	if e.Type == "url_verification" { // not signed, as the only request
		answer(w, map[string]string{"challenge": e.Challenge})
		return
	}
	if !c.isSigned(r, body) {
		http.Error(w, "invalid signature", http.StatusUnauthorized)
		return
	}
	if c.openID.Load() == nil && len(e.Event.Message.Mentions) > 0 { // after a start or a reload
		http.Error(w, "the bot doesn't know its own id yet, by which it recognises mentions", http.StatusServiceUnavailable)
		return
	}
	m, ok, err := c.inbound(r.Context(), e)
	if err == nil && ok {
		err = inbox.Receive(r.Context(), m)
	}
	if err != nil {
		c.log.Error("message of Feishu could not be stored; the platform sends it again", "error", err)
		http.Error(w, "the message could not be stored", http.StatusServiceUnavailable)
		return
	}
	answer(w, map[string]string{})
}

// answer confirms a request.
func answer(w http.ResponseWriter, v map[string]string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v) // the platform has gone
}

// isSigned checks the signature of a request. It is that of the body's bytes as they were sent.
func (c *bot) isSigned(r *http.Request, body []byte) bool {
	sum := sha256.New()
	sum.Write([]byte(r.Header.Get("X-Lark-Request-Timestamp") + r.Header.Get("X-Lark-Request-Nonce") + c.options.EncryptKey))
	sum.Write(body)
	signature := hex.EncodeToString(sum.Sum(nil))
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Lark-Signature")), []byte(signature)) == 1
}

// errEncryption means that a body isn't encrypted with the app's key.
var errEncryption = errors.New("feishu: invalid encryption")

// open decrypts the body of a request.
func (c *bot) open(body []byte) (*envelope, error) {
	var sealed struct {
		Encrypt string `json:"encrypt"`
	}
	if err := json.Unmarshal(body, &sealed); err != nil {
		return nil, errEncryption
	}
	plain, err := decrypt(c.options.EncryptKey, sealed.Encrypt)
	if err != nil {
		return nil, err
	}
	var e envelope
	if err := json.Unmarshal(plain, &e); err != nil {
		return nil, errEncryption
	}
	return &e, nil
}

// decrypt decrypts a text of AES-256-CBC in Base64. The initialization vector stands before it.
func decrypt(key, text string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < 2*aes.BlockSize || len(raw)%aes.BlockSize != 0 {
		return nil, errEncryption
	}
	sum := sha256.Sum256([]byte(key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	plain := raw[aes.BlockSize:]
	cipher.NewCBCDecrypter(block, raw[:aes.BlockSize]).CryptBlocks(plain, plain)
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errEncryption
	}
	return plain[:len(plain)-padding], nil
}
