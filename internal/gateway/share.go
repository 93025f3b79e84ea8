// Sharing a conversation with other users. A reader whose access ends is disconnected before the command returns.

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

// maxGrants limits the grants of one conversation. To share with more subjects, the owner shares with WholeTenant.
const maxGrants = 100

// share grants a subject of the owner's tenant access to the conversation, or changes its access.
func (w commands) share(t *tx, c Command) (Ack, error) {
	if err := checkGuest(c.Subject); err != nil {
		return Ack{}, err
	}
	if c.Access != AccessRead && c.Access != AccessWrite {
		return Ack{}, reject(ReasonInvalid, "share: invalid access %q: use %s or %s", c.Access, AccessRead, AccessWrite)
	}
	s := t.current()
	if c.Subject == s.Owner {
		return Ack{}, reject(ReasonInvalid, "share: the subject owns this conversation")
	}
	// An existing grant of the subject is replaced. The list is sorted, so equal grants are equal JSON.
	newGrants := withoutGrant(s.Grants, c.Subject)
	if len(newGrants) >= maxGrants {
		return Ack{}, reject(ReasonTooLarge, "share: too many grants: a conversation can have at most %d", maxGrants)
	}
	newGrants = append(newGrants, journal.Grant{Subject: c.Subject, Access: c.Access})
	slices.SortFunc(newGrants, func(a, b journal.Grant) int { return strings.Compare(a.Subject, b.Subject) })
	t.edit().Grants = newGrants
	// The key is an index for sharedWith. The grant in the summary decides about access.
	t.setKey(journalkey.Share(s.Tenant, c.Subject, w.id), []byte("1"), 0)
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
		t.setKey(journalkey.Share(s.Tenant, c.Subject, w.id), nil, 0)
		t.setKey(journalkey.Read(s.Tenant, c.Subject, w.id), nil, 0)
		t.setKey(journalkey.Heard(s.Tenant, c.Subject, w.id), nil, 0)
		// After the commit, all readers of the conversation check their access again.
		t.unshared = true
	}
	return Ack{Seq: w.head}, nil
}

// checkGuest returns a *Rejection if a subject can't be in a grant.
func checkGuest(subject string) error {
	if subject == "" {
		return reject(ReasonInvalid, "a subject is required, or %q for all users of the tenant", WholeTenant)
	}
	if err := event.CheckID("subject", subject); err != nil {
		return reject(ReasonInvalid, "%v", err)
	}
	return nil
}

// withoutGrant returns a copy of grants without those of a subject.
func withoutGrant(current []journal.Grant, subject string) []journal.Grant {
	return slices.DeleteFunc(slices.Clone(current), func(g journal.Grant) bool { return g.Subject == subject })
}

// sharedWith lists the ids of the conversations that are shared with a principal.
func sharedWith(ctx context.Context, j Journal, p Principal) ([]string, error) {
	// The ids come from the index, in which the subject may also have conversations that were deleted meanwhile; readers of the
	// list check each one.
	ids := []string{}
	for _, subject := range []string{p.Subject, WholeTenant} {
		prefix := journalkey.Share(p.Tenant, subject, "")
		keys, err := j.Keys(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("list shared conversations: %w", err)
		}
		for _, kv := range keys {
			ids = append(ids, strings.TrimPrefix(kv.Key, prefix))
		}
	}
	return ids, nil
}

// asGuest marks the message of a guest as the guest's own. In a conversation with several people readers must see the author of
// each message, and a guest must not write in another user's name.
func asGuest(p Principal, s *journal.Summary, c Command) Command {
	if c.Message == nil || p.Admin || (p.Tenant == s.Tenant && p.Subject == s.Owner) {
		return c
	}
	// A copy, because the caller's message must not change.
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
