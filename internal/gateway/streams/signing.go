// The key with which the gateway signs the webhooks of subscriptions.

package streams

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// signingName is the key under which the seed of the signatures is stored. It survives restarts, because receivers
// keep the public key.
const signingName = "stream/signing"

// signingKey signs webhooks, and authenticates the tokens of workers.
type signingKey struct {
	id      string
	private ed25519.PrivateKey
	macKey  [sha256.Size]byte
}

// newSigningKey returns the key of a seed.
func newSigningKey(keySeed []byte) *signingKey {
	k := &signingKey{private: ed25519.NewKeyFromSeed(keySeed), macKey: sha256.Sum256(append([]byte("leat streams tokens\x00"), keySeed...))}
	sum := sha256.Sum256(k.private.Public().(ed25519.PublicKey))
	k.id = "ds_" + hex.EncodeToString(sum[:8])
	return k
}

// signing returns the key, or nil before the first subscription.
func (s *Store) signing(ctx context.Context) (*signingKey, error) {
	s.mu.Lock()
	k := s.key
	s.mu.Unlock()
	if k != nil {
		return k, nil
	}
	keySeed, err := s.journal.Get(ctx, signingName)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, gateway.JournalError("signing key", err)
	}
	k = newSigningKey(keySeed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = k
	return k, nil
}

// secret is signing for a subscription that exists, which needs the key.
func (s *Store) secret(ctx context.Context) (*signingKey, error) {
	k, err := s.signing(ctx)
	if k == nil && err == nil {
		err = refuse(CodeNotFound, "there is no such subscription")
	}
	return k, err
}

// makeSigningKey creates and stores the key for the first subscription. Later calls change nothing.
func (s *Store) makeSigningKey(ctx context.Context) error {
	unlock, err := s.locks.Lock(ctx, signingName)
	if err != nil {
		return err
	}
	defer unlock()
	if k, err := s.signing(ctx); k != nil || err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("streams: signing key: %w", err)
	}
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: signingName, Value: private.Seed()}); err != nil {
		return gateway.JournalError("store signing key", err)
	}
	return nil
}

// PublicKey returns the id of the key that signs webhooks, and the key itself in the form of a JSON Web Key. Both are
// empty as long as there has been no subscription.
func (s *Store) PublicKey(ctx context.Context) (id, x string, err error) {
	k, err := s.signing(ctx)
	if k == nil || err != nil {
		return "", "", err
	}
	return k.id, base64.RawURLEncoding.EncodeToString(k.private.Public().(ed25519.PublicKey)), nil
}

// sign returns the header Webhook-Signature for a body.
func (k *signingKey) sign(body []byte, at time.Time) string {
	text := fmt.Appendf(nil, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,kid=%s,ed25519=%s", at.Unix(), k.id, base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, text)))
}

// claims are what a worker's token says.
type claims struct {
	Tenant     string `json:"t,omitempty"`
	Subject    string `json:"s,omitempty"`
	ID         string `json:"i"`
	Generation int64  `json:"g"`
}

// token returns a token for the current wake of a subscription.
func (k *signingKey) token(sub *subscription) string {
	b, _ := json.Marshal(claims{sub.Tenant, sub.Subject, sub.ID, sub.Generation}) // never fails for these types
	body := base64.RawURLEncoding.EncodeToString(b)
	return body + "." + k.mac(body)
}

// Tokens are signed instead of stored, so that a wake costs one commit and no key. A token is valid as long as its generation is the
// current one, so it needs no time of its end.

// mac authenticates a text. Its key is derived from that of the signatures, so that neither reveals the other.
func (k *signingKey) mac(text string) string {
	h := hmac.New(sha256.New, k.macKey[:])
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// open returns what a token says. It compares in constant time, so that no valid token can be found byte by byte.
func (k *signingKey) open(token string) (c claims, ok bool) {
	body, mac, _ := strings.Cut(token, ".")
	if !hmac.Equal([]byte(mac), []byte(k.mac(body))) {
		return c, false
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	return c, err == nil && json.Unmarshal(b, &c) == nil
}
