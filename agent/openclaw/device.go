package openclaw

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// device is the identity that a client shows. A gateway that is not on this machine has to approve it once, so it should stay
// the same: it derives from the token, which is as secret as a key has to be, and no file is needed.
type device struct {
	id  string
	key ed25519.PrivateKey
}

// newDevice returns the token's device; without a token one of this process.
func newDevice(token, address string) (*device, error) {
	keySeed := make([]byte, ed25519.SeedSize)
	if token == "" {
		if _, err := rand.Read(keySeed); err != nil {
			return nil, fmt.Errorf("device key: %w", err)
		}
	} else {
		var err error
		if keySeed, err = hkdf.Key(sha256.New, []byte(token), nil, "leat openclaw device "+address, len(keySeed)); err != nil {
			return nil, fmt.Errorf("device key: %w", err)
		}
	}
	key := ed25519.NewKeyFromSeed(keySeed)
	id := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return &device{id: hex.EncodeToString(id[:]), key: key}, nil
}

// deviceProof is a device's part of connect.
type deviceProof struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// sign proves to the gateway that the challenge was answered by this device, with these claims.
func (d *device) sign(p *connectParams, c challenge) *deviceProof {
	encode := base64.RawURLEncoding.EncodeToString
	fields := []string{
		"v2", d.id, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","),
		strconv.FormatInt(c.At, 10), p.Auth.Token, c.Nonce,
	}
	if hasCapabilities(c) {
		fields[0] = "v3"
		fields = append(fields, p.Client.Platform, "")
	}
	return &deviceProof{
		ID: d.id, PublicKey: encode(d.key.Public().(ed25519.PublicKey)),
		Signature: encode(ed25519.Sign(d.key, []byte(strings.Join(fields, "|")))),
		SignedAt:  c.At, Nonce: c.Nonce,
	}
}

// modern tells the gateways that name their capabilities, those of protocol 4, from older ones, before either has said which
// protocol it speaks.
func hasCapabilities(c challenge) bool { return len(c.Capabilities) > 0 }
