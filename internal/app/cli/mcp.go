package cli

import (
	"github.com/leat-dev/leat/internal/app/cli/console"
	"github.com/leat-dev/leat/internal/app/cli/mcp"
)

// mcpCmd makes the agents of a gateway tools of another program, which starts the command and talks to it over standard input and output.
type mcpCmd struct {
	remote
	Agent string `help:"Agent of new conversations. Default: that of the gateway." placeholder:"NAME"`
}

// Run serves the program until it closes the input. Nothing but the protocol may be written to standard output.
func (c *mcpCmd) Run(a *app) error {
	return mcp.Run(a.ctx, mcp.Options{
		Client: c.client(), AgentName: c.Agent, Version: thisBuild().Version, Input: a.in, Output: a.stdout, Explain: c.explain, Title: console.Title,
	})
}
