// The commands that delete a person's data and place legal holds.

package cli

import (
	"fmt"
	"maps"
	"slices"

	leat "github.com/leat-dev/leat/clients/go"
)

// purgeCmd deletes everything about one subject, or all conversations whose retention has ended. A purge may take
// minutes; if the command is interrupted, the gateway completes the purge nevertheless.
type purgeCmd struct {
	operator
	Subject string `help:"Delete everything that is stored about this subject." placeholder:"ID"`
	Tenant  string `help:"The tenant of the subject." placeholder:"ID"`
	Expired bool   `help:"Delete expired conversations now instead of during the next hours."`
	DryRun  bool   `help:"Only show what would be deleted."`
	JSON    bool   `name:"json" help:"Print the summary as JSON."`
}

// Run deletes and prints what was deleted. A dry run prints the same lines in the conditional form. Data under a
// legal hold stays, and expired conversations that stay for this reason are counted.
func (c *purgeCmd) Run(a *app) error {
	// Exactly one of the two flags must be set: the command must not guess what to delete.
	if (c.Subject == "") == !c.Expired {
		return fmt.Errorf("%w: purge needs either --subject or --expired", errUsage)
	}
	if c.Tenant != "" && c.Expired {
		return fmt.Errorf("%w: --tenant requires --subject", errUsage)
	}
	ctx, cancel := a.interruptible()
	defer cancel()
	// The participle in the summaries: what was done, or what would be done.
	did := "removed"
	if c.DryRun {
		did = "would be deleted"
	}
	// The ids of expired conversations go to standard output, where a script can read them, and the counts to
	// standard error.
	if c.Expired {
		summary, err := c.client().Expire(ctx, c.DryRun)
		if err != nil || c.JSON {
			return a.printJSON(summary, c.explain(err))
		}
		for _, id := range summary.Conversations {
			fmt.Fprintln(a.stdout, id)
		}
		fmt.Fprintf(a.stderr, "%d conversations %s, %d kept by legal holds; %d entries of the audit log\n", summary.Deleted, did, summary.LegalHolds, summary.Audit)
		return nil
	}
	summary, err := c.client().Purge(ctx, c.Tenant, c.Subject, c.DryRun)
	if err != nil || c.JSON {
		return a.printJSON(summary, c.explain(err))
	}
	fmt.Fprintf(a.stdout, "%s %s\n", count(summary.Conversations, "conversation"), did)
	fmt.Fprintf(a.stdout, "%s in conversations of others %s; the subject took part in %d\n", count(summary.Messages, "message"), did, summary.SharedConversations)
	// The kinds of data outside conversations, such as read positions, in an order that doesn't change between calls.
	for _, kind := range slices.Sorted(maps.Keys(summary.Keys)) {
		fmt.Fprintf(a.stdout, "%s: %d %s\n", kind, summary.Keys[kind], did)
	}
	fmt.Fprintf(a.stdout, "audit log: the subject's name %s from %d entries\n", did, summary.Audit)
	return nil
}

// count returns a number with a noun, which takes an s in the plural.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// holdCmd places, releases and lists legal holds. Held data is neither purged nor deleted by retention. Placing a
// hold that exists prints the time of the existing one.
type holdCmd struct {
	operator
	Conversation string `help:"Protect this conversation." placeholder:"ID"`
	Subject      string `help:"Protect all conversations of this subject." placeholder:"ID"`
	Tenant       string `help:"The tenant of the subject." placeholder:"ID"`
	Release      bool   `help:"Remove the hold."`
	List         bool   `help:"List the current holds."`
	JSON         bool   `name:"json" help:"Print JSON, one line for each hold."`
}

// Run lists the legal holds, or places or releases one. Placing a hold that exists changes nothing, and prints since when it
// exists.
func (c *holdCmd) Run(a *app) error {
	if c.List {
		if c.Conversation+c.Subject+c.Tenant != "" || c.Release {
			return fmt.Errorf("%w: --list takes no other flags", errUsage)
		}
		return c.list(a)
	}
	if (c.Conversation == "") == (c.Subject == "") {
		return fmt.Errorf("%w: hold needs --conversation, --subject or --list", errUsage)
	}
	h := leat.Hold{Conversation: c.Conversation, Tenant: c.Tenant, Subject: c.Subject}
	if c.Release {
		if err := c.client().ReleaseHold(a.ctx, h); err != nil {
			return c.explain(err)
		}
		fmt.Fprintln(a.stderr, "released")
		return nil
	}
	h, err := c.client().Hold(a.ctx, h)
	if err != nil || c.JSON {
		return a.printJSON(h, c.explain(err))
	}
	fmt.Fprintf(a.stderr, "held since %s\n", stamp(h.Since))
	return nil
}

// list prints the holds, each with the time since when it applies.
func (c *holdCmd) list(a *app) error {
	holds, err := c.client().Holds(a.ctx)
	if err != nil {
		return c.explain(err)
	}
	for _, h := range holds {
		if c.JSON {
			if err := a.printJSON(h, nil); err != nil {
				return err
			}
			continue
		}
		// A hold covers either one conversation or all conversations of a subject.
		target := "conversation " + h.Conversation
		if h.Subject != "" {
			target = "subject " + subjectName(h.Tenant, h.Subject)
		}
		fmt.Fprintf(a.stdout, "%s  %s\n", stamp(h.Since), target)
	}
	return nil
}

// subjectName formats a subject for lists as subject@tenant, or without a tenant as the subject alone.
func subjectName(tenant, subject string) string {
	if tenant == "" {
		return subject
	}
	return subject + "@" + tenant
}
