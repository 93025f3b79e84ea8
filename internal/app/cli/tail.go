package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

type tailCmd struct {
	remote
	JSON         bool   `name:"json" help:"Print the protocol's frames, one a line; docs/protocol.md describes them."`
	After        string `help:"With --json: begin after this cursor, of a frame that was printed before." placeholder:"CURSOR"`
	NoFollow     bool   `help:"End when all that is there now was shown."`
	Conversation string `arg:"" help:"Id of the conversation."`
}

func (c *tailCmd) Run(a *app) error {
	if c.After != "" && !c.JSON {
		return fmt.Errorf("%w: --after needs --json: text begins with the newest messages", errUsage)
	}
	ctx, cancel := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	client := c.client()
	// A first call says what is wrong; the stream would try again and again.
	if _, err := client.Conversation(ctx, c.Conversation); err != nil {
		return c.explain(err)
	}
	o := leat.FollowOptions{Cursor: c.After, Lost: func(err error, next time.Duration) {
		fmt.Fprintf(a.err, "leat: %v; trying again in %v\n", c.explain(err), next.Round(time.Millisecond))
	}}
	var err error
	if c.JSON {
		err = client.Stream(ctx, c.Conversation, o, func(f *leat.Frame) error {
			if _, err := fmt.Fprintf(a.terminalSafe(a.out), "%s\n", f.Raw); err != nil {
				return err
			}
			if c.NoFollow && f.Cursor != "" {
				return leat.ErrStop
			}
			return nil
		})
	} else {
		s := newScreen(a.out, a.terminal(a.out), a.columns())
		err = client.FollowWith(ctx, c.Conversation, o, func(u leat.Update) error {
			if u.Connected {
				return nil
			}
			s.draw(u.Transcript, nil)
			if c.NoFollow {
				return leat.ErrStop
			}
			return nil
		})
		if !s.fresh {
			fmt.Fprintln(a.out)
		}
	}
	if ctx.Err() != nil {
		return nil // the person has seen enough
	}
	return c.explain(err)
}
