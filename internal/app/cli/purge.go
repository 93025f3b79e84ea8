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

// operator are the flags of commands that operate a gateway.
type operator struct {
	URL   string `name:"url" help:"Address of the gateway." default:"http://127.0.0.1:31337" env:"LEAT_URL"`
	Token string `help:"API token, where one is set." env:"LEAT_API_TOKEN,ELIZA_API_TOKEN" placeholder:"T"`
}

func (o *operator) remote() *remote { return &remote{URL: o.URL, Token: o.Token} }

type purgeCmd struct {
	operator
	Subject string `help:"Remove all that is stored of this subject." placeholder:"ID"`
	Tenant  string `help:"The tenant of the subject." placeholder:"ID"`
	Expired bool   `help:"Delete now what the configured retention would delete by and by."`
	DryRun  bool   `help:"Only say what would be removed."`
	JSON    bool   `name:"json" help:"Print the summary as JSON."`
}

func (c *purgeCmd) Run(a *app) error {
	if (c.Subject == "") == !c.Expired {
		return fmt.Errorf("%w: purge needs either --subject or --expired", errUsage)
	}
	if c.Tenant != "" && c.Expired {
		return fmt.Errorf("%w: --tenant belongs to --subject", errUsage)
	}
	ctx, cancel := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r := c.remote()
	did := "removed"
	if c.DryRun {
		did = "would be removed"
	}
	if c.Expired {
		out, err := r.client().Expire(ctx, c.DryRun)
		if err != nil || c.JSON {
			return a.printed(out, r.explain(err))
		}
		for _, id := range out.Conversations {
			fmt.Fprintln(a.out, id)
		}
		fmt.Fprintf(a.err, "%d conversations %s, %d kept by a hold; %d entries of the audit log\n", out.Deleted, did, out.Held, out.Audit)
		return nil
	}
	out, err := r.client().Purge(ctx, c.Tenant, c.Subject, c.DryRun)
	if err != nil || c.JSON {
		return a.printed(out, r.explain(err))
	}
	fmt.Fprintf(a.out, "%s %s\n", count(out.Conversations, "conversation"), did)
	fmt.Fprintf(a.out, "%s in conversations of others %s; it took part in %d\n", count(out.Messages, "message"), did, out.Shared)
	kinds := make([]string, 0, len(out.Keys))
	for kind := range out.Keys {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		fmt.Fprintf(a.out, "%s: %d %s\n", kind, out.Keys[kind], did)
	}
	fmt.Fprintf(a.out, "audit log: the subject's name %s from %d entries\n", did, out.Audit)
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printed prints a value as a line of JSON, unless there is an error.
func (a *app) printed(v any, err error) error {
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
}

type holdCmd struct {
	operator
	Conversation string `help:"Keep this conversation." placeholder:"ID"`
	Subject      string `help:"Keep all conversations that belong to this subject." placeholder:"ID"`
	Tenant       string `help:"The tenant of the subject." placeholder:"ID"`
	Release      bool   `help:"Take the hold away."`
	List         bool   `help:"List the holds that stand."`
	JSON         bool   `name:"json" help:"With --list: as JSON, a line for each."`
}

func (c *holdCmd) Run(a *app) error {
	r := c.remote()
	if c.List {
		if c.Conversation+c.Subject+c.Tenant != "" || c.Release {
			return fmt.Errorf("%w: --list stands alone", errUsage)
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
		fmt.Fprintln(a.err, "released")
		return nil
	}
	h, err := r.client().Hold(a.ctx, h)
	if err != nil {
		return r.explain(err)
	}
	fmt.Fprintf(a.err, "held since %s\n", stamp(h.Since))
	return nil
}

func (c *holdCmd) list(a *app, r *remote) error {
	all, err := r.client().Holds(a.ctx)
	if err != nil {
		return r.explain(err)
	}
	for _, h := range all {
		if c.JSON {
			if err := a.printed(h, nil); err != nil {
				return err
			}
			continue
		}
		what := "conversation " + h.Conversation
		if h.Subject != "" {
			what = "subject " + named(h.Tenant, h.Subject)
		}
		fmt.Fprintf(a.out, "%s  %s\n", stamp(h.Since), what)
	}
	return nil
}

// named is a subject as lists show it.
func named(tenant, subject string) string {
	if tenant == "" {
		return subject
	}
	return subject + "@" + tenant
}
