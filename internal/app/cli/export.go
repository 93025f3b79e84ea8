// The commands that export and import a person's data.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/app/cli/console"
)

// exportCmd exports everything that a gateway stores about a subject as JSON lines, which docs/data.md describes.
type exportCmd struct {
	operator
	Subject string `required:"" help:"Subject whose data to export." placeholder:"ID"`
	Tenant  string `help:"The tenant of the subject." placeholder:"ID"`
	saving
}

func (c *exportCmd) Run(a *app) error {
	ctx, cancel := a.interruptible()
	defer cancel()
	return c.save(a, "export", "", func(w io.Writer) (int64, error) {
		n, err := c.client().Export(ctx, c.Tenant, c.Subject, w)
		return n, c.explain(err)
	})
}

// importCmd imports either the conversations of an export, or a session of an agent's upstream as a conversation that
// continues it. The flags from --agent on belong to the second form, which [importCmd.list] and [importCmd.attach]
// implement.
type importCmd struct {
	operator
	JSON bool   `name:"json" help:"Print the summary or the list as JSON."`
	File string `arg:"" optional:"" help:"Export to import; - is standard input."`

	Agent     string `help:"Import a session from this agent's upstream instead of an export." placeholder:"NAME"`
	List      bool   `help:"List the sessions of the agent's upstream."`
	Session   string `help:"Create a conversation that continues this session." placeholder:"ID"`
	Owner     string `help:"Owner of the conversation and its messages. Default: the operator." placeholder:"ID"`
	Tenant    string `help:"The tenant of the owner." placeholder:"ID"`
	NoHistory bool   `help:"Leave out the session's earlier messages."`
}

// Validate checks the combination of flags. The parser calls it.
func (c *importCmd) Validate() error {
	switch {
	// The flags of the second form make no sense without an agent.
	case c.Agent == "" && (c.List || c.Session != "" || c.Owner != "" || c.Tenant != "" || c.NoHistory):
		return errors.New("--agent NAME is required to list or import sessions")
	case c.Agent == "" && c.File == "":
		return errors.New("name an export, or use --agent NAME with --list or --session ID")
	case c.Agent != "" && c.File != "":
		return errors.New("name either an export or --agent NAME, not both")
	// Both or neither of --list and --session.
	case c.Agent != "" && c.List == (c.Session != ""):
		return errors.New("--agent NAME needs either --list or --session ID")
	}
	return nil
}

// errRefused is the error if some conversations of an export were not imported. The first of them have been printed
// with the reasons.
var errRefused = errors.New("some conversations were not imported")

// Run imports an export unless --list or --session is set. An import may be repeated: conversations that exist
// already count as unchanged. The gateway refuses single conversations, such as ones that it has deleted, and imports
// the others; then the command prints the summary as usual and fails.
func (c *importCmd) Run(a *app) error {
	ctx, cancel := a.interruptible()
	defer cancel()
	switch {
	case c.List:
		return c.list(ctx, a)
	case c.Session != "":
		return c.attach(ctx, a)
	}
	// A dash, as in other commands, is standard input, so an export can be piped from one gateway to another.
	var in io.Reader = a.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		defer f.Close()
		in = f
	}
	summary, err := c.client().Import(ctx, in)
	if err != nil {
		return c.explain(err)
	}
	if c.JSON {
		if err := a.printJSON(summary, nil); err != nil {
			return err
		}
	} else {
		for _, no := range summary.Refusals {
			fmt.Fprintf(a.stderr, "leat: %s: %s\n", no.Conversation, no.Message)
		}
		fmt.Fprintf(a.stdout, "%d imported, %d unchanged, %d refused\n", summary.Imported, summary.Unchanged, summary.RefusedConversations)
	}
	if summary.RefusedConversations > 0 {
		return errRefused
	}
	return nil
}

// list prints the sessions of an agent's upstream, newest first, with their ids for --session.
func (c *importCmd) list(ctx context.Context, a *app) error {
	sessions, err := c.client().Sessions(ctx, c.Agent)
	if err != nil || c.JSON {
		return a.printJSON(sessions, c.explain(err))
	}
	w := a.table()
	for _, s := range sessions {
		updated := ""
		// Some upstreams don't report when a session was used last. Times are local, since people compare them with
		// their memory.
		if !s.Updated.IsZero() {
			updated = s.Updated.Local().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", console.Clean(s.ID), updated, console.Clean(s.Title))
	}
	return w.Flush()
}

// attach creates a conversation that continues a session and prints its id. The earlier messages of the session are
// imported unless --no-history is set.
func (c *importCmd) attach(ctx context.Context, a *app) error {
	id, err := c.client().Attach(ctx, c.Agent, leat.AttachOptions{Session: c.Session, Tenant: c.Tenant, Owner: c.Owner, History: !c.NoHistory})
	if err != nil || c.JSON {
		return a.printJSON(map[string]string{"conversation": id}, c.explain(err))
	}
	fmt.Fprintln(a.stdout, id)
	return nil
}
