package auth

import (
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
	// Leeway forgives clocks that differ, when a token begins and ends.
	Leeway = 30 * time.Second
	// maxTime is the last second of the year 9999: an expiry beyond is a fault, or an overflow of a number.
	maxTime = 253402300799
)

// Config says which tokens are good. Of Secret, SecretFile, KeyFile and JWKS exactly one is needed.
type Config struct {
	// Secret is shared with whoever signs, by HS256: at least MinSecret bytes.
	Secret string
	// SecretFile holds the secret; white space at its end does not count.
	SecretFile string
	// KeyFile holds public keys or certificates in PEM form.
	KeyFile string
	// JWKS is the URL of a JSON Web Key Set.
	JWKS string

	// Issuer is what the claim iss has to be; empty: anything.
	Issuer string
	// Audience is what the claim aud has to name one of; empty: anything.
	Audience []string
	Claims   Claims
	// Admin lets the scope "admin" make an admin.
	Admin bool

	// Transport fetches the JWKS; nil is net/http's.
	Transport http.RoundTripper
	Log       *slog.Logger
}

// Verifier checks tokens. It may be used from several goroutines.
type Verifier struct {
	parser *jwt.Parser
	keys   source
	claims Claims
	admin  bool
}

var _ server.Users = (*Verifier)(nil)

// New returns a verifier. Secrets and keys in files are read now, and what is wrong with them is told now; a JWKS is fetched
// at the first token, so that the gateway starts without its identity service.
func New(c Config) (*Verifier, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	v := &Verifier{claims: c.Claims, admin: c.Admin}
	if v.claims.Subject == "" {
		v.claims.Subject = "sub"
	}
	var err error
	if v.keys, err = c.source(); err != nil {
		return nil, err
	}
	opts := []jwt.ParserOption{
		jwt.WithValidMethods([]string{hs256, rs256, es256, edDSA}),
		jwt.WithExpirationRequired(), jwt.WithLeeway(Leeway), jwt.WithJSONNumber(), jwt.WithStrictDecoding(),
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

func (c *Config) source() (source, error) {
	given := 0
	for _, s := range []string{c.Secret, c.SecretFile, c.KeyFile, c.JWKS} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return nil, fmt.Errorf("%w: one of secret, secret file, key file and JWKS is needed, not %d", ErrConfig, given)
	}
	wrong := func(s source, err error) (source, error) {
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
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

// wellFormed are three parts of base64url. The decoder would pass over line ends.
var wellFormed = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// Verify implements [server.Users].
func (v *Verifier) Verify(ctx context.Context, token string) (server.Identity, error) {
	if len(token) > server.MaxToken {
		return server.Identity{}, fmt.Errorf("%w: it has %d bytes, at most %d", ErrToken, len(token), server.MaxToken)
	}
	if !wellFormed.MatchString(token) {
		return server.Identity{}, fmt.Errorf("%w: it is no JSON Web Token", ErrToken)
	}
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok {
			return nil, errors.New("its header demands what is not understood (crit)")
		}
		kid, ok := t.Header["kid"].(string)
		if _, given := t.Header["kid"]; given && !ok {
			return nil, errors.New("its kid is no text")
		}
		keys, err := v.keys.find(ctx, kid, t.Method.Alg())
		return jwt.VerificationKeySet{Keys: keys}, err
	})
	switch {
	case err == nil:
	case errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenInvalidIssuer) && !errors.Is(err, jwt.ErrTokenInvalidAudience):
		// The signature was good; only time has passed.
		return server.Identity{}, fmt.Errorf("%w: %w", ErrToken, server.ErrExpired)
	case errors.Is(err, errNoKeysRead):
		return server.Identity{}, fmt.Errorf("%w: %w", server.ErrNotNow, errNoKeysRead)
	case ctx.Err() != nil:
		return server.Identity{}, context.Cause(ctx)
	default:
		return server.Identity{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil || exp.Unix() <= 0 || exp.Unix() > maxTime {
		return server.Identity{}, fmt.Errorf("%w: its expiry is no time", ErrToken)
	}
	p, err := v.principal(claims)
	if err != nil {
		return server.Identity{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	return server.Identity{Principal: p, Expires: exp.Time}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
