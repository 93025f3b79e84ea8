package auth_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
)

// Each algorithm verifies with its key from one PEM file with all keys, and no key verifies a token of another algorithm.
func TestAlgorithms(t *testing.T) {
	k := keys()
	path := file(t, pemOf(t, k.rsa.Public(), k.ec.Public(), k.ed.Public()))
	v := verifier(t, auth.Config{KeyFile: path})
	for _, c := range []struct {
		method jwt.SigningMethod
		key    any
	}{{jwt.SigningMethodRS256, k.rsa}, {jwt.SigningMethodES256, k.ec}, {jwt.SigningMethodEdDSA, k.ed}} {
		wantSubject(t, v, signed(t, c.method, c.key, nil, good(nil)), "alice")
	}
	wantSubject(t, verifier(t, auth.Config{Secret: secret}), signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(nil)), "alice")
	wantSubject(t, verifier(t, auth.Config{SecretFile: file(t, []byte(secret+"\n"))}), signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(nil)), "alice")

	wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.otherRSA, nil, good(nil)), "signature is invalid")
	for _, m := range []jwt.SigningMethod{jwt.SigningMethodRS384, jwt.SigningMethodRS512, jwt.SigningMethodPS256} {
		wantRefused(t, v, signed(t, m, k.rsa, nil, good(nil)), "signing method "+m.Alg()+" is invalid")
	}
	wantRefused(t, verifier(t, auth.Config{Secret: secret}), signed(t, jwt.SigningMethodHS512, []byte(secret), nil, good(nil)), "signing method HS512")
}

// The public key as an HMAC secret signs no valid token.
func TestAlgorithmConfusion(t *testing.T) {
	k := keys()
	public := pemOf(t, k.rsa.Public())
	path := file(t, public)
	v := verifier(t, auth.Config{KeyFile: path})
	payload := raw(fmt.Sprintf(`{"sub":"alice","exp":%d}`, time.Now().Add(time.Hour).Unix()))
	hs := func(header string, key []byte) string {
		mac := hmac.New(sha256.New, key)
		text := raw(header) + "." + payload
		mac.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	wantRefused(t, v, hs(`{"alg":"HS256","typ":"JWT"}`, public), "no key fits")
	wantRefused(t, v, hs(`{"alg":"HS256","kid":"`+path+`"}`, nil), "no key fits")
	wantRefused(t, v, hs(`{"alg":"RS256"}`, public), "signature is invalid")
	for _, none := range []string{"none", "None", "NONE", "nOnE"} {
		for _, sig := range []string{"", "x"} {
			wantRefused(t, v, raw(`{"alg":"`+none+`"}`)+"."+payload+"."+sig, "")
			wantRefused(t, verifier(t, auth.Config{Secret: secret}), raw(`{"alg":"`+none+`"}`)+"."+payload+"."+sig, "")
		}
	}
	// A token of good keys whose parts were swapped.
	tok := strings.Split(signed(t, jwt.SigningMethodRS256, k.rsa, nil, good(nil)), ".")
	wantRefused(t, v, tok[0]+"."+raw(`{"sub":"bob","exp":9999999999}`)+"."+tok[2], "signature is invalid")
	wantRefused(t, v, tok[0]+"."+tok[1]+".", "isn't a JSON Web Token")
	wantRefused(t, v, raw(`{"alg":"ES256"}`)+"."+tok[1]+"."+tok[2], "no key fits")
	// A secret's verifier knows no other algorithm.
	wantRefused(t, verifier(t, auth.Config{Secret: secret}), strings.Join(tok, "."), "no key fits")
}

// The keys that a token's header names (jku, jwk, x5u, a kid as a path) are ignored.
func TestHeaders(t *testing.T) {
	k := keys()
	v := verifier(t, auth.Config{KeyFile: file(t, pemOf(t, k.rsa.Public()))})
	for _, h := range []claims{
		{"jwk": claims{"kty": "RSA", "n": "AQAB", "e": "AQAB"}},
		{"jku": "https://evil.example/keys"},
		{"x5u": "https://evil.example/keys"},
		{"x5c": []string{"MIIB"}},
	} {
		wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.otherRSA, h, good(nil)), "signature is invalid")
	}
	for _, kid := range []string{"../../../../dev/null", "/dev/null", "' OR '1'='1", "https://evil.example", strings.Repeat("k", 4000), "a\x00b", "\nfake log line"} {
		wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.otherRSA, claims{"kid": kid}, good(nil)), "")
	}
	for _, kid := range []any{1, []string{"a"}, claims{"a": "b"}, nil, true} {
		wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.rsa, claims{"kid": kid}, good(nil)), "its kid isn't a string")
	}
	wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.rsa, claims{"crit": []string{"exp"}}, good(nil)), "crit")
	wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.rsa, claims{"crit": []string{"b64"}, "b64": false}, good(nil)), "crit")
}

func TestMalformed(t *testing.T) {
	v := verifier(t, auth.Config{Secret: secret})
	tok := signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(nil))
	parts := strings.Split(tok, ".")
	for _, bad := range []string{
		"", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d", tok + ".x", tok + "=", tok[:len(tok)-2], " " + tok, tok + "\n", "ü.ü.ü",
		raw(`[]`) + "." + parts[1] + "." + parts[2], raw(`{"alg":5}`) + "." + parts[1] + "." + parts[2], raw(`null`) + ".." + parts[2],
		strings.Repeat("a", server.MaxToken+1), strings.Repeat(".", server.MaxToken),
	} {
		wantRefused(t, v, bad, "")
	}
	// Good, but for its size.
	wantRefused(t, v, signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(claims{"x": strings.Repeat("x", server.MaxToken)})), "at most")
	wantSubject(t, v, signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(claims{"x": strings.Repeat("x", server.MaxToken/2)})), "alice")
}

// Validity times are checked with the leeway, exact to the second.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := verifier(t, auth.Config{Secret: secret})
		at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
		token := func(c claims) string { return signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(c)) }
		id := wantSubject(t, v, token(claims{"exp": at(time.Minute)}), "alice")
		if want := time.Now().Add(time.Minute); !id.Expires.Equal(want) {
			t.Errorf("ends %v, want %v", id.Expires, want)
		}
		wantSubject(t, v, token(claims{"exp": at(-auth.Leeway + time.Second)}), "alice")
		wantSubject(t, v, token(claims{"nbf": at(auth.Leeway)}), "alice")
		wantSubject(t, v, token(claims{"exp": 9999999999}), "alice")    // practically never expires
		wantSubject(t, v, token(claims{"iat": at(time.Hour)}), "alice") // iat is the time of issue, and doesn't limit the validity
		wantRefused(t, v, token(claims{"nbf": at(auth.Leeway + time.Second)}), "not valid yet")
		wantRefused(t, v, token(claims{"exp": nil}), "exp claim is required")
		for _, exp := range []any{"tomorrow", "9999999999", true, []int{1}, 1e300, 1e18, 253402300800, -1, 0} {
			wantRefused(t, v, token(claims{"exp": exp}), "")
		}
		wantRefused(t, v, token(claims{"nbf": "soon"}), "")
		_, err := v.Verify(t.Context(), token(claims{"exp": at(-auth.Leeway)}))
		if !errors.Is(err, server.ErrExpired) {
			t.Errorf("an old token: %v", err)
		}
		// That a forged token is old as well makes it no better.
		forged := signed(t, jwt.SigningMethodHS256, []byte(strings.ToUpper(secret)), nil, good(claims{"exp": at(-time.Hour)}))
		if _, err := v.Verify(t.Context(), forged); errors.Is(err, server.ErrExpired) {
			t.Errorf("a forged old token: %v", err)
		}
	})
}

func TestIssuerAndAudience(t *testing.T) {
	v := verifier(t, auth.Config{Secret: secret, Issuer: "https://id.example", Audience: []string{"leat", "leat-dev"}})
	token := func(c claims) string { return signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(c)) }
	wantSubject(t, v, token(nil), "alice")
	wantSubject(t, v, token(claims{"aud": []string{"other", "leat-dev"}}), "alice")
	for _, c := range []claims{
		{"aud": nil},
		{"aud": "other"},
		{"aud": ""},
		{"aud": []string{}},
		{"aud": []string{"leat2", "LEAT"}},
		{"aud": 5},
		{"iss": nil},
		{"iss": ""},
		{"iss": "https://id.example/"},
		{"iss": "https://evil.example"},
		{"iss": []string{"https://id.example"}},
	} {
		wantRefused(t, v, token(c), "")
	}
	// An old token for another audience was never valid here, so it isn't reported as expired.
	if _, err := v.Verify(t.Context(), token(claims{"aud": "other", "exp": 1})); errors.Is(err, server.ErrExpired) {
		t.Error(err)
	}
}

func TestClaims(t *testing.T) {
	v := verifier(t, auth.Config{Secret: secret, Claims: auth.Claims{Subject: "app.user.id", Tenant: "https://example.com/tenant", Scopes: "scope"}})
	admin := verifier(t, auth.Config{Secret: secret, Claims: auth.Claims{Scopes: "scope"}, Admin: true})
	token := func(c claims) string { return signed(t, jwt.SigningMethodHS256, []byte(secret), nil, good(c)) }
	user := func(id any, c claims) claims {
		all := claims{"app": claims{"user": claims{"id": id}}, "https://example.com/tenant": "acme"}
		for k, v := range c {
			all[k] = v
		}
		return all
	}
	for _, c := range []struct {
		claims claims
		want   string // subject/tenant [scopes]
	}{
		{user("u1", nil), "u1/acme []"},
		{user("u1", claims{"scope": "openid read profile"}), "u1/acme [read]"},
		{user("u1", claims{"scope": []string{"agent", "write", "agent", "x"}}), "u1/acme [agent write]"},
		{user("u1", claims{"scope": []any{"read", 5}}), "u1/acme [read]"},
		{user("u1", claims{"scope": "admin"}), "u1/acme []"}, // needs the configured claim
		{user(42, nil), "42/acme []"},
		{user(0, nil), "0/acme []"},
		{user(9007199254740993, nil), "9007199254740993/acme []"}, // more than a float holds
		{user("u1", claims{"https://example.com/tenant": 7}), "u1/7 []"},
		{user("Jürgen 李 🦊 عربي", nil), "Jürgen 李 🦊 عربي/acme []"},
		{user("e\u0301", nil), "e\u0301/acme []"}, // not the same as é: subjects are compared as they are
		{claims{"app.user.id": "flat", "https://example.com/tenant": "acme"}, "flat/acme []"},
		{claims{"app": claims{"user.id": "half"}, "https://example.com/tenant": "acme"}, "half/acme []"},
	} {
		id, err := v.Verify(t.Context(), token(c.claims))
		if got := fmt.Sprintf("%s/%s %v", id.Subject, id.Tenant, id.Scopes); err != nil || got != c.want || id.Admin || id.Scopes == nil {
			t.Errorf("%v: %s, %v; want %s", c.claims, got, err, c.want)
		}
	}
	for _, c := range []claims{
		nil, // sub is not what was asked for
		user("", nil),
		user("  ", nil),
		user(nil, nil),
		user(true, nil),
		user([]string{"a"}, nil),
		user(claims{"a": "b"}, nil),
		user(-1, nil),
		user(1.5, nil),
		user("a\nb", nil),
		user("a\x00", nil),
		user("a\x7f", nil),
		user(strings.Repeat("s", 257), nil),
		user("a\ufffd", nil),
		user("u1", claims{"https://example.com/tenant": ""}),
		user("u1", claims{"https://example.com/tenant": strings.Repeat("t", 257)}),
		{"app": claims{"user": claims{"id": "u1"}}}, // without a tenant
		{"app": "u1", "https://example.com/tenant": "acme"},
	} {
		wantRefused(t, v, token(c), "claim")
	}
	// Two subjects that differ only in invalid Unicode would become one.
	for _, sub := range []string{`"a\ud800"`, "\"a\xff\""} {
		text := raw(`{"alg":"HS256"}`) + "." + raw(`{"exp":9999999999,"sub":`+sub+`}`)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(text))
		wantRefused(t, admin, text+"."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), "not clean Unicode")
	}
	id := wantSubject(t, admin, token(claims{"scope": "admin"}), "alice")
	if !id.Admin {
		t.Error("the scope admin makes no admin")
	}
	if id := wantSubject(t, admin, token(claims{"scope": "administrator Admin"}), "alice"); id.Admin {
		t.Error("another scope makes an admin")
	}
	plain := wantSubject(t, verifier(t, auth.Config{Secret: secret}), token(claims{"scope": "read"}), "alice")
	if plain.Scopes != nil || plain.Tenant != "" {
		t.Errorf("claims that aren't configured are used: %+v", plain)
	}
}

func TestConfig(t *testing.T) {
	k := keys()
	private := file(t, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	for name, c := range map[string]struct {
		config auth.Config
		want   string
	}{
		"nothing":       {auth.Config{}, "one of"},
		"two":           {auth.Config{Secret: secret, KeyFile: "x"}, "one of"},
		"short":         {auth.Config{Secret: secret[1:]}, "31 bytes"},
		"short file":    {auth.Config{SecretFile: file(t, []byte("  \n"))}, "at least 32"},
		"no file":       {auth.Config{KeyFile: "/does/not/exist"}, "read keys"},
		"no PEM":        {auth.Config{KeyFile: file(t, []byte("hello"))}, "no public key"},
		"private":       {auth.Config{KeyFile: private}, "not a public key"},
		"small RSA":     {auth.Config{KeyFile: file(t, pemOf(t, k.smallRSA.Public()))}, "1024 bits"},
		"P-384":         {auth.Config{KeyFile: file(t, pemOf(t, k.ec384.Public()))}, "P-384"},
		"large":         {auth.Config{KeyFile: file(t, slices.Repeat([]byte("x"), 1<<20+1))}, "larger"},
		"no URL":        {auth.Config{JWKS: "id.example"}, "invalid JWKS URL"},
		"no https":      {auth.Config{JWKS: "http://id.example/keys"}, "https"},
		"other scheme":  {auth.Config{JWKS: "file:///etc/passwd"}, "invalid JWKS URL"},
		"too many keys": {auth.Config{KeyFile: file(t, slices.Repeat(pemOf(t, k.ed.Public()), 65))}, "more than 64"},
	} {
		if _, err := auth.New(c.config); !errors.Is(err, auth.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
