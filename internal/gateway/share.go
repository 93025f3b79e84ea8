package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// maxGrants bounds with how many a conversation is shared; beyond, Everybody is meant.
const maxGrants = 100

// share lets a subject of the owner's tenant in, or changes what it may do.
func (w commands) share(t *tx, c Command) (Ack, error) {
	if err := checkGuest(c.Subject); err != nil {
		return Ack{}, err
	}
	if c.Access != AccessRead && c.Access != AccessWrite {
		return Ack{}, reject(ReasonInvalid, "share: the access is %q; it is %s or %s", c.Access, AccessRead, AccessWrite)
	}
	s := t.current()
	if c.Subject == s.Owner {
		return Ack{}, reject(ReasonInvalid, "share: it is theirs already")
	}
	newGrants := withoutGrant(s.Grants, c.Subject)
	if len(newGrants) >= maxGrants {
		return Ack{}, reject(ReasonTooLarge, "share: it is shared with %d already", maxGrants)
	}
	newGrants = append(newGrants, journal.Grant{Subject: c.Subject, Access: c.Access})
	slices.SortFunc(newGrants, func(a, b journal.Grant) int { return strings.Compare(a.Subject, b.Subject) })
	t.edit().Grants = newGrants
	t.setKey(journalkey.Shared(s.Tenant, c.Subject, w.id), []byte("1"), 0)
	return Ack{Seq: w.head}, nil
}

// unshare revokes a subject's access and disconnects its readers before it returns.
func (w commands) unshare(t *tx, c Command) (Ack, error) {
	if err := checkGuest(c.Subject); err != nil {
		return Ack{}, err
	}
	s := t.current()
	if newGrants := withoutGrant(s.Grants, c.Subject); len(newGrants) < len(s.Grants) {
		t.edit().Grants = newGrants
		t.setKey(journalkey.Shared(s.Tenant, c.Subject, w.id), nil, 0)
		t.setKey(journalkey.Read(s.Tenant, c.Subject, w.id), nil, 0)
		t.unshared = true
	}
	return Ack{Seq: w.head}, nil
}

func checkGuest(subject string) error {
	if subject == "" {
		return reject(ReasonInvalid, "a subject is needed, or %q for everybody of the tenant", WholeTenant)
	}
	if err := event.CheckID("subject", subject); err != nil {
		return reject(ReasonInvalid, "%v", err)
	}
	return nil
}

// withoutGrant returns a copy without a subject's grant.
func withoutGrant(current []journal.Grant, subject string) []journal.Grant {
	return slices.DeleteFunc(slices.Clone(current), func(g journal.Grant) bool { return g.Subject == subject })
}

// sharedWith lists the ids of the conversations that are shared with a principal.
func sharedWith(ctx context.Context, j Journal, p Principal) ([]string, error) {
	ids := []string{}
	for _, subject := range []string{p.Subject, WholeTenant} {
		prefix := journalkey.Shared(p.Tenant, subject, "")
		keys, err := j.Keys(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("list what is shared: %w", err)
		}
		for _, kv := range keys {
			ids = append(ids, strings.TrimPrefix(kv.Key, prefix))
		}
	}
	return ids, nil
}

// asGuest marks a message as the guest's who sends it: in a conversation of several people it has to be told who said what,
// and nobody speaks for another.
func asGuest(p Principal, s *journal.Summary, c Command) Command {
	if c.Message == nil || p.Admin || (p.Tenant == s.Tenant && p.Subject == s.Owner) {
		return c
	}
	m := *c.Message
	m.Role = event.User
	author := event.Author{ID: p.Subject}
	if m.Author != nil {
		author.Name = m.Author.Name
	}
	m.Author = &author
	c.Message = &m
	return c
}
