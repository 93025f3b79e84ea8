package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef0123456789abcdef"

// The keys of all tests: making one of RSA takes long.
var keys = sync.OnceValue(func() (k struct {
	rsa, otherRSA, smallRSA *rsa.PrivateKey
	ec, ec384               *ecdsa.PrivateKey
	ed                      ed25519.PrivateKey
},
) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var err error
	k.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	k.otherRSA, err = rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	// As small as the library still makes them.
	k.smallRSA, err = rsa.GenerateKey(rand.Reader, 1024)
	must(err)
	k.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	k.ec384, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(err)
	_, k.ed, err = ed25519.GenerateKey(rand.Reader)
	must(err)
	return k
})

type claims = map[string]any

// good are claims that are as they should be, but for changes; a nil one takes a claim away.
func good(changes claims) jwt.MapClaims {
	c := jwt.MapClaims{"iss": "https://id.example", "aud": "leat", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// signed makes a token. header changes that of the library.
func signed(t *testing.T, method jwt.SigningMethod, key any, header claims, c jwt.Claims) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, c)
	maps.Copy(tok.Header, header)
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func verifier(t *testing.T, c auth.Config) server.Users {
	t.Helper()
	v, err := auth.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// wantRefused fails unless a token is refused, for the reason whose words are given, without telling the token.
func wantRefused(t *testing.T, v server.Users, token, words string) {
	t.Helper()
	id, err := v.Verify(t.Context(), token)
	if err == nil || id.Subject != "" || id.Admin {
		t.Errorf("taken, as %+v; want %q", id, words)
		return
	}
	if !errors.Is(err, auth.ErrToken) || !strings.Contains(err.Error(), words) {
		t.Errorf("error %q; want %q", err, words)
	}
	if parts := strings.Split(token, "."); len(parts) == 3 && len(parts[2]) > 20 && strings.Contains(err.Error(), parts[2]) {
		t.Errorf("the error tells the token: %v", err)
	}
}

func wantSubject(t *testing.T, v server.Users, token, subject string) server.Identity {
	t.Helper()
	id, err := v.Verify(t.Context(), token)
	if err != nil || id.Subject != subject {
		t.Errorf("subject %q, %v; want %q", id.Subject, err, subject)
	}
	return id
}

// pemOf writes public keys as PEM.
func pemOf(t *testing.T, public ...crypto.PublicKey) []byte {
	t.Helper()
	var all []byte
	for _, k := range public {
		der, err := x509.MarshalPKIXPublicKey(k)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	return all
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, content)
	return path
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// jwks writes a key set; the keys are named by their places in the arguments: name, key, name, key.
func jwks(t *testing.T, namesAndKeys ...any) string {
	t.Helper()
	var set jose.JSONWebKeySet
	for i := 0; i < len(namesAndKeys); i += 2 {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: namesAndKeys[i+1], KeyID: namesAndKeys[i].(string), Use: "sig"})
	}
	b, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func raw(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }

func body(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
