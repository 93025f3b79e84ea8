package inprocess_test

import (
	"context"
	"fmt"
	"os"

	"github.com/cexll/agentsdk-go/pkg/api"
	"github.com/cexll/agentsdk-go/pkg/model"

	"github.com/leat-dev/leat/agent/agentsdk/inprocess"
	"github.com/leat-dev/leat/gateway"
	"github.com/leat-dev/leat/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// A runtime answers the turns of a gateway in the same process.
func Example() {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "runtime")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	hello := &stub{answers: []func(context.Context, model.Request) (*model.Response, error){text("Hello from the runtime.")}}
	runtime, err := api.New(ctx, api.Options{ProjectRoot: home, Model: hello})
	if err != nil {
		panic(err)
	}
	defer runtime.Close() // after the gateway
	one, err := inprocess.New(runtime, "")
	if err != nil {
		panic(err)
	}

	gw, err := gateway.New(gateway.Config{
		Journal: memory.New(), Agents: gateway.Agents{"runtime": {Agent: one}}, DefaultAgent: "runtime",
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
		Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "hello"},
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
	// Output: completed - Hello from the runtime.
}
