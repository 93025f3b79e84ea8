package agent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/gateway"
	"github.com/leat-dev/leat/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// Shout answers with what it was told, louder. A type with this one method is an agent.
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

// An agent is a Go type with one method. A gateway runs it, and keeps all that it says for whoever reads.
func ExampleAgent() {
	ctx := context.Background()
	gw, err := gateway.New(gateway.Config{
		Journal:      memory.New(),
		Agents:       gateway.Agents{"shout": {Agent: Shout{}}},
		DefaultAgent: "shout",
	})
	if err != nil {
		panic(err)
	}
	if err := gw.Start(ctx); err != nil {
		panic(err)
	}
	defer gw.Shutdown(ctx)

	me := gateway.Principal{Admin: true}
	conversation, _, err := gw.Create(ctx, me, gateway.CreateOptions{})
	if err != nil {
		panic(err)
	}
	ack, err := gw.Do(ctx, me, conversation.ID, gateway.Command{
		Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "hello out there"},
	})
	if err != nil {
		panic(err)
	}

	feed, err := gw.Feed(ctx, me, conversation.ID)
	if err != nil {
		panic(err)
	}
	defer feed.Release()
	for ended := false; !ended; {
		changed := feed.Notify()
		feed.View(func(t *transcript.Transcript) {
			if turn := t.Turn(ack.Turn); !turn.Unfinished() {
				ended = true
				fmt.Println(turn.Outcome, "-", t.Visible(ack.Turn))
			}
		})
		if !ended {
			<-changed
		}
	}
	// Output: completed - HELLO OUT THERE
}
