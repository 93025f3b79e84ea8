// The commands about one turn: stop, and what was exchanged with its agent.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	leat "github.com/leat-dev/leat/clients/go"
)

// stopCmd stops one turn, or all turns of a conversation. The partial answers stay. A turn that has already ended is
// reported, but is not an error, because the user wanted it to end.
type stopCmd struct {
	remote
	JSON         bool   `name:"json" help:"Print the acknowledgements as JSON, one on each line."`
	Conversation string `arg:"" help:"Id of the conversation, or the beginning of its id."`
	Turn         string `arg:"" optional:"" help:"Id of the turn, or the beginning of its id. Default: all running and queued turns."`
}

// Run stops the turns one after another. If one can't be stopped, the others are still stopped, and the errors are
// joined.
func (c *stopCmd) Run(a *app) error {
	client := c.client()
	conversation, err := findConversation(a.ctx, client, c.Conversation)
	if err != nil {
		return c.explain(err)
	}
	turns := []string{c.Turn}
	if c.Turn == "" {
		turns, err = unfinished(a.ctx, client, conversation)
	} else {
		turns[0], err = findTurn(a.ctx, client, conversation, c.Turn)
	}
	if err != nil {
		return c.explain(err)
	}
	var errs []error
	for _, turn := range turns {
		ack, err := client.Stop(a.ctx, conversation, turn)
		switch {
		case err != nil:
			err = c.explain(err)
		case c.JSON:
			err = a.printJSON(ack, nil)
		case ack.AlreadyEnded:
			_, err = fmt.Fprintf(a.stdout, "%s had already ended\n", turn)
		default:
			_, err = fmt.Fprintf(a.stdout, "%s stopped\n", turn)
		}
		errs = append(errs, err)
	}
	// Without --json the command prints a line for each turn, so silence would look like a failure.
	if len(turns) == 0 {
		fmt.Fprintln(a.stderr, "leat: no turn is running")
	}
	return errors.Join(errs...)
}

// unfinished returns the turns of a conversation that can be stopped, newest first. In that order, stopping a turn doesn't start a queued
// one.
func unfinished(ctx context.Context, client *leat.Client, conversation string) ([]string, error) {
	t, err := client.Transcript(ctx, conversation)
	if err != nil {
		return nil, err
	}
	var turns []string
	for _, turn := range slices.Backward(t.Turns) {
		if turn.Unfinished() && turn.Independent() {
			turns = append(turns, turn.ID)
		}
	}
	return turns, nil
}

// findTurn returns the id of the turn that the user means: an id, the beginning of one, or "" for the newest turn. Beginnings are found
// among the turns of the newest messages, as [leat.Client.Transcript] returns them. An id that isn't among them is returned as it is,
// because the turn may be older; the gateway refuses it if it doesn't exist.
func findTurn(ctx context.Context, client *leat.Client, conversation, id string) (string, error) {
	t, err := client.Transcript(ctx, conversation)
	if err != nil {
		return "", err
	}
	var matches []string
	for _, turn := range t.Turns {
		if turn.ID == id {
			return id, nil
		}
		if strings.HasPrefix(turn.ID, id) {
			matches = append(matches, turn.ID)
		}
	}
	switch {
	case id == "" && len(matches) == 0:
		return "", fmt.Errorf("conversation %s has no turn", conversation)
	case len(matches) == 0:
		return id, nil
	case len(matches) == 1 || id == "":
		return matches[len(matches)-1], nil
	}
	return "", fmt.Errorf("%w: several ids begin with %s:\n  %s", errUsage, id, strings.Join(matches, "\n  "))
}

// turnCmd inspects a turn after the fact. The gateway has the bytes of recent turns only: see the keys record.keep
// and record.size.
type turnCmd struct {
	Export  turnExportCmd  `cmd:"" help:"Export the bytes that a turn exchanged with its agent as a recording for replay."`
	Explain turnExplainCmd `cmd:"" help:"Show the frames that a turn received, the events they were decoded to, and the text that readers saw."`
}

// turnChoice selects a turn.
type turnChoice struct {
	remote
	Conversation string `short:"c" help:"Conversation of the turn. With it, the beginning of the turn's id is enough, and without TURN its newest turn is meant." placeholder:"ID"`
	Turn         string `arg:"" optional:"" help:"Id of the turn, as printed by leat send and leat tail --json."`
}

// Validate checks the combination of flags. The parser calls it.
func (c *turnChoice) Validate() error {
	if c.Turn == "" && c.Conversation == "" {
		return errors.New("name a turn, or a conversation with --conversation ID")
	}
	return nil
}

// find returns the id of the turn.
func (c *turnChoice) find(ctx context.Context) (string, error) {
	if c.Conversation == "" {
		return c.Turn, nil
	}
	client := c.client()
	conversation, err := findConversation(ctx, client, c.Conversation)
	if err != nil {
		return "", c.remote.explain(err)
	}
	turn, err := findTurn(ctx, client, conversation, c.Turn)
	return turn, c.remote.explain(err)
}

// turnExportCmd exports the bytes that a turn exchanged with its agent. The gateway masks secrets in them. The
// recording can be replayed as an agent, or decoded with leat decode.
type turnExportCmd struct {
	turnChoice
	saving
}

func (c *turnExportCmd) Run(a *app) error {
	turn, err := c.find(a.ctx)
	if err != nil {
		return err
	}
	return c.save(a, "export", fmt.Sprintf("; play it with leat serve --agent 'replay:%s'", c.Output), func(w io.Writer) (int64, error) {
		n, err := c.client().Recording(a.ctx, turn, w)
		return n, c.explain(err)
	})
}

// turnExplainCmd shows how the frames of a turn became its text, to find out whether the agent, the dialect or the
// gateway caused an unexpected answer.
type turnExplainCmd struct {
	turnChoice
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *turnExplainCmd) Run(a *app) error {
	turn, err := c.find(a.ctx)
	if err != nil {
		return err
	}
	x, err := c.client().Explain(a.ctx, turn)
	if err != nil {
		return c.explain(err)
	}
	if c.JSON {
		return printIndented(a.terminalSafe(a.stdout), x)
	}
	return a.explained(&x)
}
