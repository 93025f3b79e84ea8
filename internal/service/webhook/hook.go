// One configured hook: its receiver, its secret, the events that it wants, and the checks of all these.

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

// Hook configures one receiver.
type Hook struct {
	// Name identifies the hook in keys, logs and metrics: 1 to 64 letters, digits, dots, dashes and underscores. A renamed hook
	// loses its waiting deliveries.
	Name string
	// URL is the address that deliveries are posted to.
	URL string
	// Secret is the key of the deliveries' signatures.
	Secret string
	// Events are the types of events to deliver. If it is empty, all of [Events] are.
	Events []event.Type
	// Content adds the visible text of messages to deliveries.
	Content bool
	// AllowPrivate permits a URL that leads to a private or local address.
	AllowPrivate bool
}

// Events returns the types of events that can be delivered.
func Events() []event.Type {
	return []event.Type{event.TurnEnd, event.TurnWait, event.MessageAdd, DeliveryFailed}
}

// minSecret is the minimum length of a secret, in bytes. A receiver of one delivery could guess a shorter one by brute force.
const minSecret = 16

var nameRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Check returns all problems of a hook's configuration. The errors contain neither its secret nor its URL.
func (h *Hook) Check() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !nameRule.MatchString(h.Name) {
		bad("name: invalid name %q: use 1 to 64 letters, digits, dots, dashes and underscores", h.Name)
	}
	switch u, err := url.Parse(h.URL); {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		bad("url: invalid URL; write it as https://example.com/path")
	case u.User != nil:
		bad("url: must not contain a password; the receiver authenticates deliveries by their signature")
	case !h.AllowPrivate && private(u.Hostname()):
		bad("url: private address; set allow_private: true to permit it")
	}
	switch n := len(h.Secret); {
	case n == 0:
		bad("secret: missing; generate one with: openssl rand -hex 32")
	case n < minSecret:
		bad("secret: has %d bytes, at least %d are required; generate one with: openssl rand -hex 32", n, minSecret)
	}
	for i, t := range h.Events {
		if !slices.Contains(Events(), t) {
			bad("events: unknown event %q; use turn.end, turn.wait, message.add or delivery.failed", t)
		}
		if slices.Contains(h.Events[:i], t) {
			bad("events: %s is repeated", t)
		}
	}
	return errs
}

// private reports whether a host is evidently private. The client checks the addresses of other names when it connects.
func private(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && outbound.Check(a) != nil
}

// wants reports whether the hook receives events of a type.
func (h *Hook) wants(t event.Type) bool {
	return slices.Contains(Events(), t) && (len(h.Events) == 0 || slices.Contains(h.Events, t))
}
