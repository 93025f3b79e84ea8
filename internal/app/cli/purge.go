package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	leat "github.com/leat-dev/leat/clients/go"
)

// operator has the flags of commands for operators.
type operator struct {
	URL   string `name:"url" help:"Address of the gateway." default:"http://127.0.0.1:31337" env:"LEAT_URL"`
	Token string `help:"API token, if the gateway has one." env:"LEAT_API_TOKEN,ELIZA_API_TOKEN" placeholder:"T"`
}

func (o *operator) remote() *remote { return &remote{URL: o.URL, Token: o.Token} }

type purgeCmd struct {
	operator
	Subject string `help:"Delete everything that is stored about this subject." placeholder:"ID"`
	Tenant  string `help:"The tenant of the subject." placeholder:"ID"`
	Expired bool   `help:"Delete expired conversations now instead of during the next hours."`
	DryRun  bool   `help:"Only show what would be deleted."`
	JSON    bool   `name:"json" help:"Print the summary as JSON."`
}

func (c *purgeCmd) Run(a *app) error {
	if (c.Subject == "") == !c.Expired {
		return fmt.Errorf("%w: purge needs either --subject or --expired", errUsage)
	}
	if c.Tenant != "" && c.Expired {
		return fmt.Errorf("%w: --tenant requires --subject", errUsage)
	}
	ctx, cancel := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r := c.remote()
	did := "removed"
	if c.DryRun {
		did = "would be deleted"
	}
	if c.Expired {
		summary, err := r.client().Expire(ctx, c.DryRun)
		if err != nil || c.JSON {
			return a.printed(summary, r.explain(err))
		}
		for _, id := range summary.Conversations {
			fmt.Fprintln(a.stdout, id)
		}
		fmt.Fprintf(a.stderr, "%d conversations %s, %d kept by legal holds; %d entries of the audit log\n", summary.Deleted, did, summary.LegalHolds, summary.Audit)
		return nil
	}
	summary, err := r.client().Purge(ctx, c.Tenant, c.Subject, c.DryRun)
	if err != nil || c.JSON {
		return a.printed(summary, r.explain(err))
	}
	fmt.Fprintf(a.stdout, "%s %s\n", count(summary.Conversations, "conversation"), did)
	fmt.Fprintf(a.stdout, "%s in conversations of others %s; the subject took part in %d\n", count(summary.Messages, "message"), did, summary.SharedConversations)
	kinds := make([]string, 0, len(summary.Keys))
	for kind := range summary.Keys {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		fmt.Fprintf(a.stdout, "%s: %d %s\n", kind, summary.Keys[kind], did)
	}
	fmt.Fprintf(a.stdout, "audit log: the subject's name %s from %d entries\n", did, summary.Audit)
	return nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printed prints a value as a line of JSON, or returns the error.
func (a *app) printed(v any, err error) error {
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", b)
	return err
}

type holdCmd struct {
	operator
	Conversation string `help:"Protect this conversation." placeholder:"ID"`
	Subject      string `help:"Protect all conversations of this subject." placeholder:"ID"`
	Tenant       string `help:"The tenant of the subject." placeholder:"ID"`
	Release      bool   `help:"Remove the hold."`
	List         bool   `help:"List the current holds."`
	JSON         bool   `name:"json" help:"With --list: print JSON, one line for each hold."`
}

func (c *holdCmd) Run(a *app) error {
	r := c.remote()
	if c.List {
		if c.Conversation+c.Subject+c.Tenant != "" || c.Release {
			return fmt.Errorf("%w: --list takes no other flags", errUsage)
		}
		return c.list(a, r)
	}
	if (c.Conversation == "") == (c.Subject == "") {
		return fmt.Errorf("%w: hold needs --conversation, --subject or --list", errUsage)
	}
	h := leat.Hold{Conversation: c.Conversation, Tenant: c.Tenant, Subject: c.Subject}
	if c.Release {
		if err := r.client().ReleaseHold(a.ctx, h); err != nil {
			return r.explain(err)
		}
		fmt.Fprintln(a.stderr, "released")
		return nil
	}
	h, err := r.client().Hold(a.ctx, h)
	if err != nil {
		return r.explain(err)
	}
	fmt.Fprintf(a.stderr, "held since %s\n", stamp(h.Since))
	return nil
}

func (c *holdCmd) list(a *app, r *remote) error {
	holds, err := r.client().Holds(a.ctx)
	if err != nil {
		return r.explain(err)
	}
	for _, h := range holds {
		if c.JSON {
			if err := a.printed(h, nil); err != nil {
				return err
			}
			continue
		}
		target := "conversation " + h.Conversation
		if h.Subject != "" {
			target = "subject " + subjectName(h.Tenant, h.Subject)
		}
		fmt.Fprintf(a.stdout, "%s  %s\n", stamp(h.Since), target)
	}
	return nil
}

// subjectName formats a subject for lists.
func subjectName(tenant, subject string) string {
	if tenant == "" {
		return subject
	}
	return subject + "@" + tenant
}
