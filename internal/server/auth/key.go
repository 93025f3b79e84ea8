// The keys that verify tokens: shared secrets, PEM files and JWKS. A key verifies only the algorithms that fit it.

package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// minSecret is the shortest secret in bytes: as long as the output of HS256 (RFC 7518, section 3.2).
	minSecret = 32
	// minRSA is the smallest RSA modulus in bits (RFC 7518, section 3.3).
	minRSA = 2048
	// maxKeys is the largest number of keys in a source: the current ones, the next ones, and a few old ones.
	maxKeys = 64
)

var hs256, rs256, es256, edDSA = jwt.SigningMethodHS256.Alg(), jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg(), jwt.SigningMethodEdDSA.Alg()

// key verifies signatures.
//
// The algorithm belongs to the key and is never taken from the token alone: an RSA public key must not
// verify an HS256 token.
type key struct {
	id  string // kid; may be empty
	alg string // the only algorithm of the key
	key jwt.VerificationKey
}

// publicKey returns the key for a public key, or for the public part of a private one.
//
// It refuses keys that are too weak or on another curve with an error that says what is needed.
func publicKey(id string, k any) (key, error) {
	if private, ok := k.(crypto.Signer); ok {
		k = private.Public()
	}
	switch k := k.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < minRSA {
			return key{}, fmt.Errorf("RSA key of %d bits, at least %d", n, minRSA)
		}
		return key{id, rs256, k}, nil
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return key{}, fmt.Errorf("key on the curve %s; ES256 needs P-256", k.Params().Name)
		}
		return key{id, es256, k}, nil
	case ed25519.PublicKey:
		return key{id, edDSA, k}, nil
	}
	return key{}, fmt.Errorf("key of type %T; RSA, P-256 or Ed25519 are known", k)
}

// fitting returns the keys that may have signed a token with this kid and algorithm. A token without a kid fits every key, and
// a key without one fits every token.
func fitting(keys []key, kid, alg string) []jwt.VerificationKey {
	var fit []jwt.VerificationKey
	for _, k := range keys {
		if k.alg == alg && (kid == "" || k.id == "" || k.id == kid) {
			fit = append(fit, k.key)
		}
	}
	return fit
}

// parseSecret returns the key for a shared secret.
func parseSecret(b []byte) ([]key, error) {
	if len(b) < minSecret {
		return nil, fmt.Errorf("the secret has %d bytes, at least %d", len(b), minSecret)
	}
	return []key{{"", hs256, b}}, nil
}

// parsePEM returns the keys of public keys and certificates in PEM form.
//
// One wrong block makes the whole file invalid, so that a typing error doesn't silently disable a key.
// Keys in PEM form have no kid.
func parsePEM(b []byte) ([]key, error) {
	var keys []key
	for block, remaining := pem.Decode(b); block != nil; block, remaining = pem.Decode(remaining) {
		var public any
		var err error
		switch block.Type {
		case "PUBLIC KEY":
			public, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			public, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var c *x509.Certificate
			if c, err = x509.ParseCertificate(block.Bytes); err == nil {
				public = c.PublicKey
			}
		default:
			// A private key does not belong here, so it is not used.
			err = fmt.Errorf("a block %q, not a public key", block.Type)
		}
		var k key
		if err == nil {
			k, err = publicKey("", public)
		}
		if err != nil {
			return nil, err
		}
		if keys = append(keys, k); len(keys) > maxKeys {
			return nil, fmt.Errorf("more than %d keys", maxKeys)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no public key in PEM form")
	}
	return keys, nil
}

// parseJWKS parses a JSON Web Key Set. Keys of unknown types or for other uses are left out, as RFC 7517 demands. So are
// symmetric keys, which must not be in a published set.
func parseJWKS(b []byte) ([]key, error) {
	var keySet struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(b, &keySet); err != nil {
		return nil, fmt.Errorf("not a JWKS: %w", err)
	}
	if len(keySet.Keys) > maxKeys {
		return nil, fmt.Errorf("a JWKS of %d keys, at most %d", len(keySet.Keys), maxKeys)
	}
	var keys []key
	for _, raw := range keySet.Keys {
		var j jose.JSONWebKey
		if j.UnmarshalJSON(raw) != nil || !j.Valid() || (j.Use != "" && j.Use != "sig") {
			continue
		}
		k, err := publicKey(j.KeyID, j.Key)
		if err != nil || (j.Algorithm != "" && j.Algorithm != k.alg && !(k.alg == edDSA && j.Algorithm == "Ed25519")) {
			continue
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("a JWKS without a key for RS256, ES256 or EdDSA")
	}
	return keys, nil
}
