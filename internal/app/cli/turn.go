package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

type turnCmd struct {
	Export  turnExportCmd  `cmd:"" help:"Export the bytes that a turn exchanged with its agent as a recording for replay."`
	Explain turnExplainCmd `cmd:"" help:"Show the frames that a turn received, the events they were decoded to, and the text that readers saw."`
}

type turnExportCmd struct {
	remote
	Output string `short:"o" help:"File to create; it must not exist. Default: standard output." placeholder:"FILE"`
	Turn   string `arg:"" help:"Id of the turn, as printed by leat send and leat tail --json."`
}

func (c *turnExportCmd) Run(a *app) (err error) {
	if c.Output == "" {
		_, err := c.client().Recording(a.ctx, c.Turn, a.terminalSafe(a.stdout))
		return c.explain(err)
	}
	f, err := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(c.Output))
		}
	}()
	n, err := c.client().Recording(a.ctx, c.Turn, f)
	if err := errors.Join(c.explain(err), f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "%s: %d bytes; play it with leat serve --agent 'replay:%s'\n", c.Output, n, c.Output)
	return nil
}

type turnExplainCmd struct {
	remote
	JSON bool   `name:"json" help:"Print JSON."`
	Turn string `arg:"" help:"Id of the turn."`
}

func (c *turnExplainCmd) Run(a *app) error {
	x, err := c.client().Explain(a.ctx, c.Turn)
	if err != nil {
		return c.explain(err)
	}
	if c.JSON {
		enc := json.NewEncoder(a.terminalSafe(a.stdout))
		enc.SetIndent("", "  ")
		return enc.Encode(x)
	}
	return a.explained(&x)
}
