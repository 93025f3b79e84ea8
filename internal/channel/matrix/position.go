package matrix

import (
	"context"
	"net/http"
	"time"
)

const (
	// positionType is the type of the account data with the position.
	positionType = "dev.leat.position"
	// saveGap is the time after which a new position is stored although no message has arrived.
	saveGap = 10 * time.Minute
)

// position is how far a bot has read. It is stored in the account data, so it belongs to the account and not to a machine.
type position struct {
	// Since is a token of the homeserver, which is empty for a new account.
	Since string `json:"since"`
	// Encrypted are the encrypted rooms that know that the bot can't read them.
	Encrypted []string `json:"encrypted,omitempty"`

	// savedAt is when it was stored, or tried to be. The zero value makes the next sync store it.
	savedAt time.Time
}

// positionPath returns the path of the account data with the position.
func (s *syncer) positionPath() string {
	return path("client/v3/user/%s/account_data/%s", s.identity.id, positionType)
}

// load reads the position. A new account has none.
func (s *syncer) load(ctx context.Context) error {
	err := s.client.call(ctx, requestLimit, http.MethodGet, s.positionPath(), nil, &s.position)
	if code(err) == codeNotFound {
		return nil
	}
	return err
}

// save stores the position. If it can't be stored, messages may arrive twice after a restart, and the inbox ignores them. So a failure
// is not repeated at once.
func (s *syncer) save(ctx context.Context) error {
	s.position.savedAt = time.Now()
	err := s.client.call(ctx, requestLimit, http.MethodPut, s.positionPath(), s.position, nil)
	if err != nil && ctx.Err() == nil && !isTokenRefused(err) {
		s.log.Warn("the position can't be stored", "error", err)
		return nil
	}
	return err
}
