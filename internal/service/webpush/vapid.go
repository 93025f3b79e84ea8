package webpush

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// tokenLifetime is how long a push service may accept a token. RFC 8292 allows a day.
const tokenLifetime = 12 * time.Hour

// identity is the key with which a gateway identifies itself to push services (VAPID, RFC 8292). Browsers bind their subscriptions to it,
// so a new key would end all subscriptions.
type identity struct {
	key *ecdsa.PrivateKey
	// public is the public key as an uncompressed point in base64url. Browsers get it as applicationServerKey, and
	// push services in each request.
	public string
	// contact is a URL at which a push service finds the operator.
	contact string
}

// newIdentity returns the identity of a private key from newKey. contact is an https URL at which the operator can be
// found.
func newIdentity(key []byte, contact string) (*identity, error) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), key)
	if err != nil {
		return nil, fmt.Errorf("parse the key: %w", err)
	}
	public, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("parse the key: %w", err)
	}
	return &identity{private, base64.RawURLEncoding.EncodeToString(public), contact}, nil
}

// newKey returns a new private key on the curve P-256: its scalar in 32 bytes, big-endian.
func newKey() ([]byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return private.Bytes()
}

// authorization returns the Authorization header for a request to an endpoint: a JWT (RFC 8292, section 2) and the
// public key that verifies it. Its audience is the origin of the push service, so a service can't use a token at
// another one. at is the current time. The signature of ES256 is r and s, each padded to 32 bytes, and not the ASN.1
// that crypto/ecdsa returns by default (RFC 7518, section 3.4).
func (i *identity) authorization(endpoint *url.URL, at time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"aud": endpoint.Scheme + "://" + endpoint.Host, "exp": at.Add(tokenLifetime).Unix(), "sub": i.contact})
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return "vapid t=" + text + "." + base64.RawURLEncoding.EncodeToString(signature) + ", k=" + i.public, nil
}
