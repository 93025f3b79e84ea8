package cli

import (
	"fmt"
	"io"
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
