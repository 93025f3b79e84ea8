package cli

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

type auditCmd struct {
	operator
	Since        string `help:"Only what happened since then: a time in RFC 3339, or one before now such as 24h." placeholder:"TIME"`
	Subject      string `help:"Only what this subject did and what was done to it." placeholder:"ID"`
	Tenant       string `help:"The tenant of the subject." placeholder:"ID"`
	Conversation string `help:"Only what was done to this conversation." placeholder:"ID"`
	Follow       bool   `short:"f" help:"Go on with what happens."`
	JSON         bool   `name:"json" help:"As JSON, a line for each entry."`
}

func (c *auditCmd) Run(a *app) error {
	ctx, cancel := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r := c.remote()
	o := leat.AuditOptions{Since: c.Since, Tenant: c.Tenant, Subject: c.Subject, Conversation: c.Conversation, Follow: c.Follow}
	err := r.client().Audit(ctx, o, func(e *leat.AuditEntry) error {
		if c.JSON {
			_, err := fmt.Fprintf(a.terminalSafe(a.out), "%s\n", e.Raw)
			return err
		}
		_, err := fmt.Fprintln(a.terminalSafe(a.out), auditLine(e))
		return err
	})
	if ctx.Err() != nil {
		return nil // the person has seen enough
	}
	return r.explain(err)
}

// auditLine is an entry for people.
func auditLine(e *leat.AuditEntry) string {
	who := named(e.By.Tenant, e.By.Subject)
	switch {
	case e.Blanked:
		who = "-"
	case e.By.Gateway != "":
		who = "(" + e.By.Gateway + ")"
	case e.By.Acting:
		who = "admin for " + who
	case e.By.Admin && who != "":
		who += " (admin)"
	case e.By.Admin:
		who = "admin"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-10s %-10s %s", stamp(e.At), e.Action, e.Result, who)
	for _, f := range []struct{ name, v string }{
		{"from", e.By.From}, {"conversation", e.Conversation}, {"turn", e.Turn}, {"message", e.Message}, {"subject", named(e.Tenant, e.Subject)}, {"digest", e.Digest}, {"plugin", e.Plugin},
	} {
		if f.v != "" {
			fmt.Fprintf(&b, "  %s=%s", f.name, f.v)
		}
	}
	if e.Blanked {
		b.WriteString("  (deleted)")
	}
	return b.String()
}

// stamp is a time in epoch milliseconds as lists show it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
