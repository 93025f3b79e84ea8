package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	leat "github.com/leat-dev/leat/clients/go"
)

// sendCmd sends a message and returns when the gateway has stored it. It prints the id of the turn that will answer,
// and whether the message started the turn, steers a running one or is queued.
type sendCmd struct {
	remote
	Agent        string   `help:"Agent to use instead of the conversation's." placeholder:"NAME"`
	Key          string   `help:"Idempotency key: a message with the same key is sent only once." placeholder:"K"`
	JSON         bool     `name:"json" help:"Print the acknowledgement as JSON."`
	Conversation string   `arg:"" help:"Id of the conversation, or the beginning of its id."`
	Text         []string `arg:"" help:"Message; - reads it from standard input."`
}

// Run sends one message and prints its turn, without waiting for the answer.
func (c *sendCmd) Run(a *app) error {
	text, err := a.text(c.Text)
	if err != nil {
		return err
	}
	client := c.client()
	conversation, err := findConversation(a.ctx, client, c.Conversation)
	if err != nil {
		return c.explain(err)
	}
	// The client retries after a lost response with the same idempotency key, so the message is sent once. With --key
	// that also holds for a second run of the command.
	ack, err := client.Do(a.ctx, conversation, leat.Command{Type: "send", Key: c.Key, Agent: c.Agent, Message: &leat.Message{Text: text, Source: "cli"}})
	if err != nil || c.JSON {
		return a.printJSON(ack, c.explain(err))
	}
	_, err = fmt.Fprintf(a.stdout, "%s %s\n", ack.Turn, ack.State)
	return err
}

// text joins the arguments of a command, or reads standard input if they are a dash.
func (a *app) text(words []string) (string, error) {
	text := strings.Join(words, " ")
	// The line feed that most editors and echo add at the end is not part of the message.
	if text == "-" {
		b, err := io.ReadAll(a.in)
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = strings.TrimRight(string(b), "\n")
	}
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%w: the message is empty", errUsage)
	}
	return text, nil
}

// stopCmd stops one turn, or all turns of a conversation. The partial answers stay. A turn that has already ended is
// reported, but is not an error, because the user wanted it to end.
type stopCmd struct {
	remote
	JSON         bool   `name:"json" help:"Print the acknowledgements as JSON, one on each line."`
	Conversation string `arg:"" help:"Id of the conversation, or the beginning of its id."`
	Turn         string `arg:"" optional:"" help:"Id of the turn. Default: all running and queued turns."`
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
		if turns, err = unfinished(a, client, conversation); err != nil {
			return c.explain(err)
		}
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
func unfinished(a *app, client *leat.Client, conversation string) ([]string, error) {
	t, err := client.Transcript(a.ctx, conversation)
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
