package cli

import (
	"fmt"
	"io"
)

// turnCmd inspects a turn after the fact. The gateway has the bytes of recent turns only: see the keys record.keep
// and record.size.
type turnCmd struct {
	Export  turnExportCmd  `cmd:"" help:"Export the bytes that a turn exchanged with its agent as a recording for replay."`
	Explain turnExplainCmd `cmd:"" help:"Show the frames that a turn received, the events they were decoded to, and the text that readers saw."`
}

// turnExportCmd exports the bytes that a turn exchanged with its agent. The gateway masks secrets in them. The
// recording can be replayed as an agent, or decoded with leat decode.
type turnExportCmd struct {
	remote
	Output string `short:"o" help:"File to create; it must not exist. Default: standard output." placeholder:"FILE"`
	Turn   string `arg:"" help:"Id of the turn, as printed by leat send and leat tail --json."`
}

func (c *turnExportCmd) Run(a *app) error {
	return a.save("export", c.Output, fmt.Sprintf("; play it with leat serve --agent 'replay:%s'", c.Output), func(w io.Writer) (int64, error) {
		n, err := c.client().Recording(a.ctx, c.Turn, w)
		return n, c.explain(err)
	})
}

// turnExplainCmd shows how the frames of a turn became its text, to find out whether the agent, the dialect or the
// gateway caused an unexpected answer.
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
		return printIndented(a.terminalSafe(a.stdout), x)
	}
	return a.explained(&x)
}
