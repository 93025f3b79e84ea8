// The end of a viewer's token. The viewer is warned, may send a new token of the same user, and is disconnected otherwise.

package native

import (
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

const (
	// warnBefore is how long before the token of a socket expires the client is warned: enough time to fetch a new one.
	warnBefore = time.Minute
	// closeExpired is the close code of a socket whose token has expired. Clients reconnect with a new token.
	closeExpired = 4001
)

// principal returns the user of the newest token.
func (s *webSocket) principal() gateway.Principal { return s.identity.Load().Principal }

// scheduleWarning arranges for an "expiring" frame warnBefore the token's end. Each end is warned of once: a client that can't renew
// its token is not warned again. A token that never expires needs no timer.
func (s *webSocket) scheduleWarning() {
	if s.warning != nil {
		s.warning.Stop()
		s.warning = nil
	}
	if ends := s.identity.Load().Expires; !ends.IsZero() {
		s.warning = s.conn.AfterFunc(time.Until(ends.Add(-warnBefore)), func() { s.warn(ends) })
	}
}

// warn sends the frame that the token expires, unless the token was renewed at this very moment.
func (s *webSocket) warn(ends time.Time) {
	if !s.identity.Load().Expires.Equal(ends) || s.lastWarning.Swap(ends.UnixNano()) == ends.UnixNano() {
		return
	}
	_ = s.send(expiryFrame{Type: "expiring", Expires: milliseconds(ends)}) // if this fails, the connection ends
}

// renew replaces the token of a socket by a newer one of the same user. If the new token is refused, the socket keeps its old one.
//
// It handles a frame, so no other frame is handled between the new identity and the check of the
// subscriptions. Only changed scopes need that check, as the user is the same. A nil list of scopes means
// all of them and differs from an empty one.
func (s *webSocket) renew(f clientFrame) error {
	id, err := s.n.s.Authenticate(s.handshake.Request(s.ctx), f.Token)
	if err == nil && !sameUser(id.Principal, s.principal()) {
		err = server.Errorf(http.StatusForbidden, server.ReasonForbidden, "the token belongs to another user; open another connection for it")
	}
	if err != nil {
		return s.send(newError("error", f.ID, "", err))
	}
	before := s.principal()
	s.identity.Store(&id)
	s.conn.EndAt(id.Expires, server.ErrExpired)
	s.scheduleWarning()
	if !slices.Equal(before.Scopes, id.Scopes) || before.Scopes == nil != (id.Scopes == nil) {
		if err := s.recheck(); err != nil {
			return err
		}
	}
	return s.send(expiryFrame{Type: "authenticated", ID: f.ID, Expires: milliseconds(id.Expires)})
}

// recheck ends the subscriptions that the principal may no longer read after its scopes have changed.
func (s *webSocket) recheck() error {
	for _, sub := range slices.Clone(s.subs) {
		id := sub.conversation
		if _, err := s.n.gw.Conversation(s.ctx, s.principal(), gateway.ActionRead, id); err != nil {
			s.unsubscribe(id)
			if err := s.send(newError("error", "", id, err)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameUser reports whether two principals are the same user. Scopes are not compared: a new token may have
// others.
func sameUser(a, b gateway.Principal) bool {
	return a.Admin == b.Admin && a.Tenant == b.Tenant && a.Subject == b.Subject
}

// milliseconds returns t since the Unix epoch, or 0 if t is the zero time: it never expires.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
