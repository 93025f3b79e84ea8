package cli

import (
	"context"
	"fmt"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// tailCmd follows a conversation. Its text output is the same as that of chat; its JSON output is the protocol's
// frames, from which a program can resume with --after.
type tailCmd struct {
	remote
	JSON         bool   `name:"json" help:"Print the protocol's frames, one on each line; see docs/protocol.md."`
	After        string `help:"With --json: resume after the cursor of a frame that was printed earlier." placeholder:"CURSOR"`
	NoFollow     bool   `help:"Exit after the current contents."`
	Last         bool   `help:"Follow the conversation that was used last."`
	Conversation string `arg:"" optional:"" help:"Id of the conversation, or the beginning of its id."`
}

// Run prints the conversation until the user interrupts it, or with --no-follow until the first frame or state that
// contains the current contents. Frames are printed as they were received. A lost connection is reported on standard
// error and retried.
func (c *tailCmd) Run(a *app) error {
	// A text can only be drawn from a whole transcript, which begins with a snapshot; a cursor skips the snapshot.
	if c.After != "" && !c.JSON {
		return fmt.Errorf("%w: --after requires --json, because text output starts with the newest messages", errUsage)
	}
	if c.Last == (c.Conversation != "") {
		return fmt.Errorf("%w: tail needs the id of a conversation, or --last", errUsage)
	}
	ctx, cancel := a.interruptible()
	defer cancel()
	client := c.client()
	find := lastConversation
	if !c.Last {
		find = func(ctx context.Context, client *leat.Client) (string, error) {
			return findConversation(ctx, client, c.Conversation)
		}
	}
	conversation, err := find(ctx, client)
	if err != nil {
		return c.explain(err)
	}
	o := leat.FollowOptions{Cursor: c.After, OnDisconnect: func(err error, next time.Duration) {
		fmt.Fprintf(a.stderr, "leat: %v; retrying in %v\n", c.explain(err), next.Round(time.Millisecond))
	}}
	if c.JSON {
		err = client.Stream(ctx, conversation, o, func(f *leat.Frame) error {
			if _, err := fmt.Fprintf(a.terminalSafe(a.stdout), "%s\n", f.Raw); err != nil {
				return err
			}
			// Frames with a cursor contain the state; the first one is the snapshot or, after a cursor, everything
			// since then.
			if c.NoFollow && f.Cursor != "" {
				return leat.ErrStop
			}
			return nil
		})
	} else {
		s := newScreen(a.stdout, a.terminal(a.stdout), a.columns())
		err = client.FollowWith(ctx, conversation, o, func(u leat.Update) error {
			if u.Connected {
				return nil
			}
			s.draw(u.Transcript, nil)
			if c.NoFollow {
				return leat.ErrStop
			}
			return nil
		})
		// The prompt of the shell begins on a new line even if the last text has no line feed.
		if !s.atLineStart {
			fmt.Fprintln(a.stdout)
		}
	}
	if ctx.Err() != nil {
		return nil // interrupted by the user
	}
	return c.explain(err)
}
