package native

import (
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

const (
	// warnBefore is how long before the end of its token a socket is told of it: long enough to fetch a new one.
	warnBefore = time.Minute
	// closeExpired is the code with which a socket is closed whose token is too old: come back with a new one.
	closeExpired = 4001
)

// proven takes a proof of who asks: at first, and when it is renewed.
func (s *socket) proven(id server.Identity) {
	s.who.Store(&id)
	select {
	case s.renewed <- struct{}{}:
	default: // the watcher has yet to look at the one before
	}
}

// principal is who asks now.
func (s *socket) principal() gateway.Principal { return s.who.Load().Principal }

// watch warns of the end of the proof, and ends the socket at it.
func (s *socket) watch() {
	warned := time.Time{} // the end that was warned of
	for {
		ends := s.who.Load().Expires
		at := ends
		if !ends.Equal(warned) {
			at = ends.Add(-warnBefore)
		}
		timer := time.NewTimer(time.Until(at))
		if ends.IsZero() {
			timer.Stop() // it waits for a token that has an end
		}
		select {
		case <-s.ctx.Done():
			timer.Stop()
			return
		case <-s.renewed:
			timer.Stop()
		case <-timer.C:
			switch {
			case !s.who.Load().Expires.Equal(ends): // it was renewed at this very moment
			case !time.Now().Before(ends):
				s.cancel(server.ErrExpired)
				return
			default:
				warned = ends
				if s.send(expiryFrame{Type: "expiring", Expires: milliseconds(ends)}) != nil {
					return // the reader finds out too
				}
			}
		}
	}
}

// renew takes a new token of the same somebody, on a socket that has one already.
func (s *socket) renew(f clientFrame) error {
	id, err := s.n.s.Authenticate(s.r, f.Token)
	if err == nil && !same(id.Principal, s.principal()) {
		err = server.Errorf(403, server.ReasonForbidden, "the token is somebody else's; open another connection for them")
	}
	if err != nil {
		return s.send(newError("error", f.ID, "", err)) // the socket goes on with the token that it has
	}
	before := s.principal()
	s.proven(id)
	if !slices.Equal(before.Scopes, id.Scopes) || before.Scopes == nil != (id.Scopes == nil) {
		if err := s.recheck(); err != nil {
			return err
		}
	}
	return s.send(expiryFrame{Type: "authenticated", ID: f.ID, Expires: milliseconds(id.Expires)})
}

// recheck ends the subscriptions that the principal, whose scopes have changed, may not have any more.
func (s *socket) recheck() error {
	for id := range s.subs {
		if _, err := s.n.gw.Conversation(s.ctx, s.principal(), gateway.ActionRead, id); err != nil {
			s.unsubscribe(id)
			if err := s.send(newError("error", "", id, err)); err != nil {
				return err
			}
		}
	}
	return nil
}

func same(a, b gateway.Principal) bool {
	return a.Admin == b.Admin && a.Tenant == b.Tenant && a.Subject == b.Subject
}

// milliseconds since the epoch; 0 for the zero time, which is never.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
