package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

type exportCmd struct {
	operator
	Subject string `required:"" help:"Whose data." placeholder:"ID"`
	Tenant  string `help:"The tenant of the subject." placeholder:"ID"`
	Output  string `short:"o" help:"File to make; it must not be there. Default: print it." placeholder:"FILE"`
}

func (c *exportCmd) Run(a *app) (err error) {
	ctx, cancel := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r := c.remote()
	if c.Output == "" {
		_, err := r.client().Export(ctx, c.Tenant, c.Subject, a.terminalSafe(a.out))
		return r.explain(err)
	}
	f, err := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() {
		if err != nil { // half an export is none
			err = errors.Join(err, os.Remove(c.Output))
		}
	}()
	n, err := r.client().Export(ctx, c.Tenant, c.Subject, f)
	if err := errors.Join(r.explain(err), f.Sync(), f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "%s: %d bytes\n", c.Output, n)
	return nil
}

type importCmd struct {
	operator
	JSON bool   `name:"json" help:"Print the summary, or the list, as JSON."`
	File string `arg:"" optional:"" help:"The export; - is standard input."`

	Agent     string `help:"Take a session of this agent's upstream in place of an export." placeholder:"NAME"`
	List      bool   `help:"List the sessions that the agent's upstream has."`
	Session   string `help:"Make a conversation that continues this session." placeholder:"ID"`
	Owner     string `help:"To whom the conversation and its messages belong. Default: the operator." placeholder:"ID"`
	Tenant    string `help:"The tenant of the owner." placeholder:"ID"`
	NoHistory bool   `help:"Leave out what was said in the session so far."`
}

// Validate is called by the parser.
func (c *importCmd) Validate() error {
	switch {
	case c.Agent == "" && (c.List || c.Session != "" || c.Owner != "" || c.Tenant != "" || c.NoHistory):
		return errors.New("--agent NAME is needed to list or take sessions")
	case c.Agent == "" && c.File == "":
		return errors.New("give an export, or --agent NAME with --list or --session ID")
	case c.Agent != "" && c.File != "":
		return errors.New("give either an export or --agent NAME")
	case c.Agent != "" && c.List == (c.Session != ""):
		return errors.New("--agent NAME needs either --list or --session ID")
	}
	return nil
}

// errRefused says that not all of an export was imported.
var errRefused = errors.New("not all was imported")

func (c *importCmd) Run(a *app) error {
	ctx, cancel := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	switch {
	case c.List:
		return c.list(ctx, a)
	case c.Session != "":
		return c.attach(ctx, a)
	}
	var in io.Reader = a.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		defer f.Close()
		in = f
	}
	r := c.remote()
	out, err := r.client().Import(ctx, in)
	if err != nil {
		return r.explain(err)
	}
	if c.JSON {
		if err := a.printed(out, nil); err != nil {
			return err
		}
	} else {
		for _, no := range out.Refusals {
			fmt.Fprintf(a.err, "leat: %s: %s\n", no.Conversation, no.Message)
		}
		fmt.Fprintf(a.out, "%d imported, %d unchanged, %d refused\n", out.Imported, out.Unchanged, out.Refused)
	}
	if out.Refused > 0 {
		return errRefused
	}
	return nil
}
