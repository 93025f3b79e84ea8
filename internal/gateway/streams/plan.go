// Plans of subscriptions: which streams they have, and where their wakes go.

package streams

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/gateway"
)

// Plan describes a subscription to create.
type Plan struct {
	Type    string   `json:"type"`
	Pattern string   `json:"pattern,omitempty"`
	Streams []string `json:"streams,omitempty"`
	// Of a webhook.
	URL string `json:"url,omitempty"`
	// Path of the stream with the messages for workers.
	Wake        string `json:"wake,omitempty"`
	LeaseMillis int64  `json:"lease"`
	Description string `json:"description,omitempty"`
}

// matches reports whether the pattern selects a stream. The stream with the messages for workers never does, because
// each message would cause another one.
func (sub *subscription) matches(path string) bool {
	return sub.Plan.Pattern != "" && path != sub.Plan.Wake && glob(sub.Plan.Pattern, path)
}

// glob reports whether a pattern matches a path: * is one segment, and ** any number of them.
func glob(pattern, path string) bool {
	return globSegments(strings.Split(pattern, "/"), strings.Split(path, "/"))
}

func globSegments(pattern, path []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(path) + 1 {
				if globSegments(pattern[1:], path[i:]) {
					return true
				}
			}
			return false
		}
		if len(path) == 0 || pattern[0] != "*" && pattern[0] != path[0] {
			return false
		}
		pattern, path = pattern[1:], path[1:]
	}
	return len(path) == 0
}

// maxWild is how many ** a pattern may have, because each multiplies the time of a comparison.
const maxWild = 2

// check refuses plans that can't work, and fills in the defaults.
func (p *Plan) check(id string, creator gateway.Principal) error {
	for i, path := range p.Streams {
		p.Streams[i] = strings.Trim(path, "/")
		if err := checkPath(p.Streams[i]); err != nil {
			return refuse(CodeInvalid, "streams: %v", err)
		}
	}
	// Two plans with the same streams in another order, or with slashes around them, are equal.
	slices.Sort(p.Streams)
	p.Streams, p.Wake, p.Pattern = slices.Compact(p.Streams), strings.Trim(p.Wake, "/"), strings.Trim(p.Pattern, "/")
	if p.LeaseMillis == 0 {
		p.LeaseMillis = defaultLease.Milliseconds()
	}
	lease := time.Duration(p.LeaseMillis) * time.Millisecond
	switch {
	case id == "" || max(len(id), len(p.Pattern), len(p.Description), len(p.Wake)) > maxText:
		return refuse(CodeInvalid, "an id, a pattern, a path and a description have at most %d bytes", maxText)
	case p.Pattern == "" && len(p.Streams) == 0:
		return refuse(CodeInvalid, "a subscription needs a pattern or streams")
	case strings.Count(p.Pattern, "**") > maxWild:
		return refuse(CodeInvalid, "a pattern may have ** %d times", maxWild)
	case lease < minLease || lease > maxLease:
		return refuse(CodeInvalid, "lease_ttl_ms must be between %d and %d", minLease.Milliseconds(), maxLease.Milliseconds())
	case p.Type == typeWebhook:
		p.Wake = ""
		return checkURL(p.URL, creator)
	case p.Type == typePull && p.Wake != "":
		p.URL = ""
		return nil
	case p.Type == typePull:
		return refuse(CodeInvalid, "a subscription of type %s needs a wake_stream", typePull)
	}
	return refuse(CodeInvalid, "the type of a subscription is %s or %s", typeWebhook, typePull)
}

// checkURL refuses addresses that the gateway must not send requests to for a user. The client of [deliverer] also
// checks where a name leads. Only the operator may name this machine, for development.
func checkURL(address string, creator gateway.Principal) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || len(address) > maxText {
		return refuse(CodeURL, "webhook.url is not a URL")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	isLoopback := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	switch {
	case u.Scheme == "http" && isLoopback && creator.Admin:
		return nil
	case u.Scheme != "https":
		return refuse(CodeURL, "webhook.url must begin with https://; the operator may also use http://localhost and http://127.0.0.1")
	case isLoopback || err == nil && outbound.Check(ip) != nil:
		return refuse(CodeURL, "webhook.url must not name an address of a private network")
	}
	return nil
}

// equals reports whether two plans are the same.
func (p *Plan) equals(o *Plan) bool {
	return p.Type == o.Type && p.Pattern == o.Pattern && slices.Equal(p.Streams, o.Streams) && p.URL == o.URL && p.Wake == o.Wake &&
		p.LeaseMillis == o.LeaseMillis && p.Description == o.Description
}
