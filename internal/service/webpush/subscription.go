package webpush

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/internal/base/outbound"
)

// maxEndpoint limits an endpoint, in bytes. Those of browsers have a few hundred.
const maxEndpoint = 1024

// Subscription is what a browser's PushSubscription.toJSON returns: where to send messages, and the keys to encrypt them with.
type Subscription struct {
	Endpoint string           `json:"endpoint"`
	Keys     subscriptionKeys `json:"keys"`
	// ExpirationTime is accepted, because browsers send it, and ignored: a push service answers 404 or 410 for a
	// subscription that has ended.
	ExpirationTime any `json:"expirationTime,omitempty"`
}

// subscriptionKeys are the browser's keys in base64url: its public key, and a secret that authenticates messages.
type subscriptionKeys struct {
	P256DH string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// Check returns an error that wraps ErrSubscription if messages can't be sent to the subscription. Names are resolved when a message is
// sent, and the address is checked then.
func (s *Subscription) Check() error {
	if _, err := s.endpoint(); err != nil {
		return err
	}
	_, _, err := s.keys()
	return err
}

// endpoint returns the parsed endpoint. Its error doesn't contain the endpoint, which is a secret.
func (s *Subscription) endpoint() (*url.URL, error) {
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(s.Endpoint) > maxEndpoint:
		return nil, fmt.Errorf("%w: endpoint: invalid URL", ErrSubscription)
	case u.Scheme != "https":
		return nil, fmt.Errorf("%w: endpoint: must use https", ErrSubscription)
	case isLocal(u.Hostname()):
		return nil, fmt.Errorf("%w: endpoint: private address", ErrSubscription)
	}
	return u, nil
}

// isLocal reports whether a host is certainly not public.
func isLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && outbound.Check(a) != nil
}

func (s *Subscription) keys() (receiver *ecdh.PublicKey, auth []byte, err error) {
	public, err := decodeKey(s.Keys.P256DH)
	if err == nil {
		receiver, err = ecdh.P256().NewPublicKey(public)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: keys.p256dh: %w", ErrSubscription, err)
	}
	auth, err = decodeKey(s.Keys.Auth)
	if err != nil || len(auth) != 16 {
		return nil, nil, fmt.Errorf("%w: keys.auth: must have 16 bytes", ErrSubscription)
	}
	return receiver, auth, nil
}

// decodeKey decodes base64url. Some browsers pad it.
func decodeKey(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// id returns the name of a subscription in the journal.
func (s *Subscription) id() string { return subscriptionID(s.Endpoint) }

func subscriptionID(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return hex.EncodeToString(sum[:16])
}
