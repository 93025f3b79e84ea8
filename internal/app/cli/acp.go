package cli

import (
	"github.com/leat-dev/leat/internal/app/cli/acp"
	"github.com/leat-dev/leat/internal/app/cli/console"
	"github.com/leat-dev/leat/internal/app/config"
)

// acpCmd makes the agents of a gateway agents of an editor, which starts the command and talks to it over standard input and output.
type acpCmd struct {
	remote
	Agent string `help:"Agent of new sessions. Default: that of the gateway." placeholder:"NAME"`
}

// Run serves the editor until it closes the input. It connects to the gateway with the first session and not at once, so that the editor gets the
// reason in the session if there is no gateway. Nothing but the protocol may be written to standard output.
func (c *acpCmd) Run(a *app) error {
	log, err := a.logger(config.Log{Level: "info", Format: "text"})
	if err != nil {
		return err
	}
	return acp.Run(a.ctx, acp.Options{
		Client: c.client(), AgentName: c.Agent, Version: thisBuild().Version, Input: a.in, Output: a.stdout, Log: log,
		Explain: c.explain, Title: console.Title, Question: console.Question,
	})
}
