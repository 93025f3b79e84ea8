package server

import (
	"context"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// MaxToken is the length in bytes of the longest token.
const MaxToken = 16 << 10

// Identity is the principal of a request and the validity of its credentials.
type Identity struct {
	gateway.Principal
	// when the credentials expire; zero means never, unless the API token changes
	Expires time.Time

	user    bool   // authenticated by a user's token and not by the API token
	session string // id of the session cookie, if there was one
}

// Users verifies the tokens of end users. Several goroutines may call it.
type Users interface {
	// Verify returns the identity of a token's user. If the token is valid except that it has expired, the error wraps
	// ErrExpired. If the token could not be checked, the error wraps ErrNotNow. The error's text never contains the token.
	Verify(ctx context.Context, token string) (Identity, error)
}

// identification is the result of authentication, in a request's context.
type identification struct {
	id  Identity
	err error // why authentication failed; id is zero then
}

type askedKey struct{}

// IdentityOf returns the identity of a request of an [InBand] or [Public] route. It is zero if the request had no valid
// credentials.
func IdentityOf(ctx context.Context) Identity {
	a, _ := ctx.Value(askedKey{}).(identification)
	return a.id
}
