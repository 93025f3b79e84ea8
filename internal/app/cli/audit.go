package cli

import (
	"fmt"
	"strings"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// auditCmd prints the entries of the audit log, oldest first. The gateway selects them, so a long log is not
// transferred for a few entries. --since is passed on unparsed: the gateway subtracts a duration from its own clock,
// not from this machine's.
type auditCmd struct {
	operator
	Since        string `help:"Show entries since this time (RFC 3339), or for this long, such as 24h." placeholder:"TIME"`
	Subject      string `help:"Show what this subject did and what was done to it." placeholder:"ID"`
	Tenant       string `help:"The tenant of the subject." placeholder:"ID"`
	Conversation string `help:"Show what was done to this conversation." placeholder:"ID"`
	Follow       bool   `short:"f" help:"Continue with new entries until interrupted."`
	JSON         bool   `name:"json" help:"Print JSON, one line for each entry."`
}

// Run prints entries until the log ends, or with --follow until the user interrupts it. JSON output passes on the
// received bytes of each entry unchanged, with fields that this version of the program doesn't know.
func (c *auditCmd) Run(a *app) error {
	ctx, cancel := a.interruptible()
	defer cancel()
	o := leat.AuditOptions{Since: c.Since, Tenant: c.Tenant, Subject: c.Subject, Conversation: c.Conversation, Follow: c.Follow}
	err := c.client().Audit(ctx, o, func(e *leat.AuditEntry) error {
		if c.JSON {
			_, err := fmt.Fprintf(a.terminalSafe(a.stdout), "%s\n", e.Raw)
			return err
		}
		_, err := fmt.Fprintln(a.terminalSafe(a.stdout), auditLine(e))
		return err
	})
	if ctx.Err() != nil {
		return nil // interrupted by the user
	}
	return c.explain(err)
}

// auditLine returns an entry as a line: time, action, result, actor, and the ids that the entry has, as name=value.
//
// The actor is the subject's name, with a note if the holder of the API token acted for the subject. A component of
// the gateway, such as retention, is in parentheses. An entry whose data was deleted with its conversation or by a
// purge has only its time and action left, so its actor is a dash.
func auditLine(e *leat.AuditEntry) string {
	actor := subjectName(e.Actor.Tenant, e.Actor.Subject)
	switch {
	case e.Blanked:
		actor = "-"
	case e.Actor.Gateway != "":
		actor = "(" + e.Actor.Gateway + ")"
	case e.Actor.Acting:
		actor = "admin for " + actor
	case e.Actor.Admin && actor != "":
		actor += " (admin)"
	case e.Actor.Admin:
		actor = "admin"
	}
	var b strings.Builder
	// The columns are padded for the usual actions and results; longer ones move the rest of their line.
	fmt.Fprintf(&b, "%s  %-10s %-10s %s", stamp(e.At), e.Action, e.Result, actor)
	for _, f := range []struct{ name, v string }{
		{"from", e.Actor.From}, {"conversation", e.Conversation}, {"turn", e.Turn}, {"message", e.Message}, {"subject", subjectName(e.Tenant, e.Subject)}, {"digest", e.Digest}, {"plugin", e.Plugin},
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

// stamp formats a time in epoch milliseconds for lists.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
