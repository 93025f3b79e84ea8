package inprocess_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/cexll/agentsdk-go/pkg/api"
	"github.com/cexll/agentsdk-go/pkg/model"

	"github.com/leat-dev/leat"
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agentsdk/inprocess"
	client "github.com/leat-dev/leat/clients/go"
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

	gw, err := leat.Start(ctx, leat.Options{Agents: map[string]agent.Agent{"runtime": one}})
	if err != nil {
		panic(err)
	}
	defer gw.Close(ctx)
	web := httptest.NewServer(gw.Handler())
	defer web.Close()

	c := &client.Client{URL: web.URL}
	conversation, err := c.Create(ctx, client.CreateOptions{})
	if err != nil {
		panic(err)
	}
	ack, err := c.Send(ctx, conversation.ID, "hello")
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
	// Output: completed - Hello from the runtime.
}
