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

// device is the Ed25519 identity that the client proves in each handshake. An operator has to approve it once on a gateway of
// another machine, so it must stay the same: it is derived from the token and the gateway's address. That needs no key file,
// and the key is as secret as the token.
type device struct {
	id  string
	key ed25519.PrivateKey
}

// newDevice returns the identity for a token at a gateway. Without a token it is random and lasts as long as the process.
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

// deviceProof is the device's part of the connect request.
type deviceProof struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// sign signs the challenge together with the client's claims in p. Protocol 4 signs the fields of "v3", older gateways those of
// "v2"; the order of the fields is part of OpenClaw's protocol. The fields are joined by "|". The last field of v3 is
// always empty here. The signature and the key are base64url without padding.
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

// hasCapabilities reports whether a challenge is that of a gateway of protocol 4. The version itself is only known after the
// handshake, but the client has to sign and choose its scopes before.
func hasCapabilities(c challenge) bool { return len(c.Capabilities) > 0 }
