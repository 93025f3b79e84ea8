package server

import (
	"context"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// MaxToken bounds a token, in bytes.
const MaxToken = 16 << 10

// Identity is who a request comes from, and how long that is proven.
type Identity struct {
	gateway.Principal
	// Expires is when the proof ends; zero: when the API token is changed.
	Expires time.Time

	user    bool   // the proof is a user's token, not the API token
	session string // the id of the cookie that proved it, if one did
}

// Users knows the tokens of end users. It may be called from several goroutines.
type Users interface {
	// Verify returns whom a token speaks for. Its error wraps ErrExpired where nothing but its age is wrong with the token,
	// and ErrNotNow where it could not be looked at; its text never holds the token.
	Verify(ctx context.Context, token string) (Identity, error)
}

// asked is what is known of who asks, in a request's context.
type asked struct {
	id  Identity
	err error // why it is nobody
}

type askedKey struct{}

// IdentityOf returns who the request of an [InBand] or [Public] route came from, by its context: nobody where it brought no
// good token.
func IdentityOf(ctx context.Context) Identity {
	a, _ := ctx.Value(askedKey{}).(asked)
	return a.id
}
