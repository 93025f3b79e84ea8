package agent_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/leat-dev/leat"
	"github.com/leat-dev/leat/agent"
	client "github.com/leat-dev/leat/clients/go"
)

// Shout repeats the message in capitals. A type with this one method is an agent.
type Shout struct{}

func (Shout) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	if err := out.Reasoning("They may not have heard themselves."); err != nil {
		return err
	}
	tool, err := out.Tool("shout", "")
	if err != nil {
		return err
	}
	loud := strings.ToUpper(in.Message.Text)
	if err := tool.Output(loud); err != nil {
		return err
	}
	if err := tool.Done(); err != nil {
		return err
	}
	for _, word := range strings.SplitAfter(loud, " ") {
		if err := out.Text(word); err != nil {
			return err // the turn was stopped
		}
	}
	return nil // the turn is completed
}

// An agent is a Go type with one method. A gateway runs it and stores its output for every reader.
func ExampleAgent() {
	ctx := context.Background()
	gw, err := leat.Start(ctx, leat.Options{Agents: map[string]agent.Agent{"shout": Shout{}}})
	if err != nil {
		panic(err)
	}
	defer gw.Close(ctx)
	web := httptest.NewServer(gw.Handler())
	defer web.Close()

	// Any reader sees the same answer: the page in a browser, another program, this client.
	c := &client.Client{URL: web.URL}
	conversation, err := c.Create(ctx, client.CreateOptions{})
	if err != nil {
		panic(err)
	}
	ack, err := c.Send(ctx, conversation.ID, "hello out there")
	if err != nil {
		panic(err)
	}
	err = c.Follow(ctx, conversation.ID, func(u client.Update) error {
		turn := u.Transcript.Turn(ack.Turn)
		if turn == nil || turn.Unfinished() {
			return nil
		}
		fmt.Println(turn.Outcome, "-", u.Transcript.Visible(ack.Turn))
		return client.ErrStop
	})
	if err != nil {
		panic(err)
	}
	// Output: completed - HELLO OUT THERE
}
