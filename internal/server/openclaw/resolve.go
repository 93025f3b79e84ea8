package openclaw

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/leat-dev/leat/internal/store/journal"
)

// resolveParams name a session by its key, which may be in a reference, by the id of its conversation, by the beginning of that id, by a
// piece of the session's name, or by its title.
type resolveParams struct {
	Key       string `json:"key"`
	Reference struct {
		Key string `json:"key"`
	} `json:"reference"`
	SessionID string `json:"sessionId"`
	// ShortID is the beginning of an id, or of the id in a key, without hyphens: at least 8 characters.
	ShortID string `json:"shortId"`
	// SlugHint is the title in an address. It decides if several ids begin in the same way: those of one minute do.
	SlugHint string `json:"slugHint"`
	Label    string `json:"label"`
	AgentID  string `json:"agentId"`
	// AllowMissing makes an unknown session no error.
	AllowMissing bool `json:"allowMissing"`
}

// resolveSession answers sessions.resolve, with which the Control UI finds the session of its address.
func (c *connection) resolveSession(p *resolveParams) (any, error) {
	missing := func(name string) (any, error) {
		if p.AllowMissing {
			return map[string]any{"ok": false}, nil
		}
		return nil, unknownSession(name)
	}
	if key := cmp.Or(p.Key, p.Reference.Key); key != "" {
		k, s, err := c.parse(&keyParams{Key: key, AgentID: p.AgentID})
		switch {
		case err != nil:
			return nil, err
		case s == nil && k.name != nameMain: // the main session is made by its first message
			return missing(key)
		}
		if s == nil {
			return resolvedSession{true, candidate{Key: k.full, AgentID: k.agent}}, nil
		}
		return resolvedSession{true, candidateOf(k, s)}, nil
	}
	found, err := c.candidates(p)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return missing(cmp.Or(p.SessionID, p.ShortID, p.Label))
	case len(found) > 1 && p.AllowMissing: // the person chooses
		return map[string]any{"ok": false, "candidates": found[:min(len(found), maxCandidates)]}, nil
	}
	return resolvedSession{true, found[0]}, nil
}

// resolvedSession is the response to sessions.resolve if there is one session. Its name must be that of the list: the Control UI makes an address
// from each, and replaces one address by the other for as long as they differ.
type resolvedSession struct {
	OK bool `json:"ok"`
	candidate
}

// maxCandidates is how many sessions the Control UI offers. It says that there are more if it gets so many.
const maxCandidates = 10

// candidate is a session that parameters may mean.
type candidate struct {
	Key         string `json:"key"`
	AgentID     string `json:"agentId"`
	DisplayName string `json:"displayName,omitempty"`
	UpdatedAt   int64  `json:"updatedAt,omitempty"`
}

// candidateOf returns a conversation under a key as a candidate.
func candidateOf(k sessionKey, s *journal.Summary) candidate {
	return candidate{k.full, k.agent, s.Title, s.Updated}
}

// candidates returns the sessions that parameters without a key may mean, the newest first. If the titles of some of them are the one in the address,
// it returns only those.
func (c *connection) candidates(p *resolveParams) (found []candidate, err error) {
	summaries, err := c.summaries()
	if err != nil {
		return nil, err
	}
	var named []candidate
	short := compact(p.ShortID)
	for i := range summaries {
		s := &summaries[i]
		k := c.keyFor(s)
		isSame := p.SessionID != "" && s.ID == p.SessionID || p.Label != "" && s.Title == p.Label
		if !isSame && (short == "" || p.AgentID != "" && !strings.EqualFold(p.AgentID, k.agent) || !strings.HasPrefix(compact(s.ID), short) && !strings.Contains(compact(k.name), short)) {
			continue
		}
		one := candidateOf(k, s)
		found = append(found, one)
		if p.SlugHint != "" && slugOf(s.Title) == p.SlugHint {
			named = append(named, one)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return found, nil
}

// compact returns an id as addresses have it.
func compact(id string) string { return strings.ToLower(strings.ReplaceAll(id, "-", "")) }

var (
	slugSeparators = regexp.MustCompile(`[^a-z0-9]+`)
	// A word with other letters than hexadecimal digits ends a slug, so that it doesn't look like an id.
	slugEnd = regexp.MustCompile(`^.*[g-z][a-z0-9]*`)
)

// slugOf returns a title as the Control UI has it in addresses: its words with hyphens, at most 48 characters.
func slugOf(title string) string {
	slug := slugEnd.FindString(strings.Trim(slugSeparators.ReplaceAllString(strings.ToLower(title), "-"), "-"))
	return strings.TrimRight(slug[:min(len(slug), 48)], "-")
}
