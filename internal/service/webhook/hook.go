package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/outbound"
)

// Hook is one receiver.
type Hook struct {
	// Name tells hooks apart in keys, logs and metrics: letters, digits, dots, dashes and underscores, at most 64.
	Name string
	// URL is where deliveries are posted to.
	URL string
	// Secret signs them.
	Secret string
	// Events are the types that it is told of; all of [Events] where there are none.
	Events []event.Type
	// Content adds the visible text.
	Content bool
	// AllowPrivate lets the URL lead to this machine or its network.
	AllowPrivate bool
}

// Events returns the types of events that a hook can be told of.
func Events() []event.Type { return []event.Type{event.TurnEnd, event.TurnWait, event.MessageAdd} }

// minSecret is the shortest secret, in bytes: shorter ones can be guessed from one delivery.
const minSecret = 16

var nameRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Check reports everything that is wrong with a hook. The errors hold neither its secret nor its URL.
func (h *Hook) Check() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !nameRule.MatchString(h.Name) {
		bad("name: letters, digits, dots, dashes and underscores are needed, at most 64, not %q", h.Name)
	}
	switch u, err := url.Parse(h.URL); {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		bad("url: write it as https://example.com/path")
	case u.User != nil:
		bad("url: a password does not belong there; the receiver knows a delivery by its signature")
	case !h.AllowPrivate && private(u.Hostname()):
		bad("url: it leads to this machine or its network; say allow_private: true if that is meant")
	}
	switch n := len(h.Secret); {
	case n == 0:
		bad("secret: it is missing; make one with: openssl rand -hex 32")
	case n < minSecret:
		bad("secret: %d bytes, at least %d are needed; make one with: openssl rand -hex 32", n, minSecret)
	}
	for i, t := range h.Events {
		if !slices.Contains(Events(), t) {
			bad("events: %q; there are turn.end, turn.wait and message.add", t)
		}
		if slices.Contains(h.Events[:i], t) {
			bad("events: %s stands there twice", t)
		}
	}
	return errs
}

// private reports whether it is plain already that a host is not public. What others lead to is seen when they are dialled.
func private(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && outbound.Check(a) != nil
}

// wants reports whether the hook is told of events of a type.
func (h *Hook) wants(t event.Type) bool {
	if len(h.Events) == 0 {
		return slices.Contains(Events(), t)
	}
	return slices.Contains(h.Events, t)
}
