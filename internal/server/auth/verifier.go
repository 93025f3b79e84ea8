package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leat-dev/leat/internal/server"
)

const (
	// leeway is the tolerated difference of clocks, at the start and at the end of a token's validity.
	leeway = 30 * time.Second
	// maxTime is the last second of the year 9999. A later expiry is an error or an overflow.
	maxTime = 253402300799
)

// Config configures a verifier. Exactly one of Secret, SecretFile, KeyFile and JWKS is required.
type Config struct {
	// Secret is shared with the issuer, for HS256. It has at least minSecret bytes.
	Secret string
	// SecretFile is a file with the secret. White space at its end is ignored.
	SecretFile string
	// KeyFile is a PEM file with public keys or certificates.
	KeyFile string
	// JWKS is the URL of a JSON Web Key Set.
	JWKS string

	// Issuer is the required value of the claim iss. If it is empty, any is accepted.
	Issuer string
	// Audience lists accepted values of the claim aud. If it is empty, any is accepted.
	Audience []string
	Claims   Claims
	// Admin allows the scope "admin".
	Admin bool

	// Transport fetches the JWKS. If it is nil, net/http's default is used.
	Transport http.RoundTripper
	Log       *slog.Logger
}

// verifier verifies tokens. Several goroutines may call it.
type verifier struct {
	parser *jwt.Parser
	keys   source
	claims Claims
	admin  bool
}

var _ server.Users = (*verifier)(nil)

// New returns a verifier. It reads secrets and keys from files, and reports their errors. A JWKS is fetched for the first
// token, so that the gateway starts without its identity service.
func New(c Config) (*verifier, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	v := &verifier{claims: c.Claims, admin: c.Admin}
	v.claims.Subject = cmp.Or(v.claims.Subject, "sub")
	var err error
	if v.keys, err = c.source(); err != nil {
		return nil, err
	}
	opts := []jwt.ParserOption{
		jwt.WithValidMethods([]string{hs256, rs256, es256, edDSA}),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithJSONNumber(), jwt.WithStrictDecoding(),
	}
	if c.Issuer != "" {
		opts = append(opts, jwt.WithIssuer(c.Issuer))
	}
	if len(c.Audience) > 0 {
		opts = append(opts, jwt.WithAudience(c.Audience...))
	}
	v.parser = jwt.NewParser(opts...)
	return v, nil
}

// source returns the source of keys that is configured. Exactly one is required, so that it is obvious
// which keys are trusted.
func (c *Config) source() (source, error) {
	sources := 0
	for _, s := range []string{c.Secret, c.SecretFile, c.KeyFile, c.JWKS} {
		if s != "" {
			sources++
		}
	}
	if sources != 1 {
		return nil, fmt.Errorf("%w: one of secret, secret file, key file and JWKS is needed, not %d", errConfig, sources)
	}
	wrong := func(s source, err error) (source, error) {
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errConfig, err)
		}
		return s, nil
	}
	switch {
	case c.Secret != "":
		keys, err := parseSecret([]byte(c.Secret))
		return wrong(fixed(keys), err)
	case c.SecretFile != "":
		return wrong(openFile(c.SecretFile, func(b []byte) ([]key, error) {
			return parseSecret([]byte(strings.TrimRight(string(b), " \t\r\n")))
		}, c.Log))
	case c.KeyFile != "":
		return wrong(openFile(c.KeyFile, parsePEM, c.Log))
	}
	return newRemote(c.JWKS, c.Transport, c.Log)
}

// wellFormed matches three parts of base64url. The decoder alone would ignore line breaks.
var wellFormed = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// Verify implements [server.Users].
//
// The errors of the token itself wrap errToken and are final. An expired token is reported separately only
// if its issuer and audience are right, so that the client fetches a new one. If no key could be read yet,
// the token may be valid, and the client should retry.
func (v *verifier) Verify(ctx context.Context, token string) (server.Identity, error) {
	if len(token) > server.MaxToken {
		return server.Identity{}, fmt.Errorf("%w: it has %d bytes, at most %d", errToken, len(token), server.MaxToken)
	}
	if !wellFormed.MatchString(token) {
		return server.Identity{}, fmt.Errorf("%w: it isn't a JSON Web Token", errToken)
	}
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok {
			return nil, errors.New("its header demands what is not understood (crit)")
		}
		kid, ok := t.Header["kid"].(string)
		if _, present := t.Header["kid"]; present && !ok {
			return nil, errors.New("its kid isn't a string")
		}
		keys, err := v.keys.find(ctx, kid, t.Method.Alg())
		return jwt.VerificationKeySet{Keys: keys}, err
	})
	switch {
	case err == nil:
	case errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenInvalidIssuer) && !errors.Is(err, jwt.ErrTokenInvalidAudience):
		// The signature is valid; the token has only expired.
		return server.Identity{}, fmt.Errorf("%w: %w", errToken, server.ErrExpired)
	case errors.Is(err, errNoKeysRead):
		return server.Identity{}, fmt.Errorf("%w: %w", server.ErrNotNow, errNoKeysRead)
	case ctx.Err() != nil:
		return server.Identity{}, context.Cause(ctx)
	default:
		return server.Identity{}, fmt.Errorf("%w: %w", errToken, err)
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil || exp.Unix() <= 0 || exp.Unix() > maxTime {
		return server.Identity{}, fmt.Errorf("%w: its exp isn't a valid time", errToken)
	}
	p, err := v.principal(claims)
	if err != nil {
		return server.Identity{}, fmt.Errorf("%w: %w", errToken, err)
	}
	return server.Identity{Principal: p, Expires: exp.Time}, nil
}

// loopback reports whether a URL's host is this machine, where plain HTTP can't be intercepted.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
