package openclaw

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// device is the identity of a client's device, with its signature of the challenge. Key and signature are in base64url without padding.
type device struct {
	ID        string `json:"id"` // SHA-256 of the key, in hexadecimal
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"` // epoch milliseconds
	Nonce     string `json:"nonce"`    // of the challenge
}

// isProven reports whether the device has signed what the client claims about itself, and this connection's challenge.
//
// The signature grants nothing: the token decides. But a client that sends one and can't prove it is broken or an impostor. Version 3 of the
// signed text ends with the platform and the family of the device, version 2 doesn't have them.
func (d *device) isProven(p *connectParams, nonce string) bool {
	key, err := base64.RawURLEncoding.DecodeString(d.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize || d.Nonce != nonce {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(d.Signature)
	if err != nil {
		return false
	}
	sum := sha256.Sum256(key)
	if hex.EncodeToString(sum[:]) != d.ID {
		return false
	}
	for _, token := range []string{p.Auth.Token, p.Auth.DeviceToken, p.Auth.Password, ""} {
		claims := strings.Join([]string{
			d.ID, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","), strconv.FormatInt(d.SignedAt, 10), token, nonce,
		}, "|")
		normal := func(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
		for _, signed := range []string{"v3|" + claims + "|" + normal(p.Client.Platform) + "|" + normal(p.Client.DeviceFamily), "v2|" + claims} {
			if ed25519.Verify(key, []byte(signed), signature) {
				return true
			}
		}
	}
	return false
}
