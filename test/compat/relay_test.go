package compat

import (
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/leat-dev/leat/agent"
	agentkinds "github.com/leat-dev/leat/agent/all"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/internal/gateway"
)

// A client's tool is offered through two gateways: the agent of the first is a model behind the Responses API, and that API is the second
// gateway's. The call of the second gateway's agent reaches the client, and the result goes the whole way back.
func TestToolsThroughAModel(t *testing.T) {
	upstream, _ := serveChats(t)
	for name, options := range map[string]map[string]string{
		"connected":  {"background": "false"},
		"background": {"background": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			options["base_url"], options["token"] = upstream+"/v1", secret
			model, err := agentkinds.Kinds(all.Registry()).Make(agent.Spec{Name: "plain", Kind: "responses", Target: "offered", Options: options})
			if err != nil {
				t.Fatal(err)
			}
			client := openaiClient(serveAgents(t, gateway.Agents{"plain": {Agent: model}}).url, secret)
			tools := []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
				Name: "getLocation", Description: openai.String("Where the user is"), Parameters: map[string]any{"type": "object", "properties": map[string]any{}},
			}}}
			asked, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "plain", Input: text("where?"), Tools: tools})
			if err != nil {
				t.Fatal(err)
			}
			const described = `getLocation, Where the user is, {"properties":{},"type":"object"}: `
			if got := asked.OutputText(); got != described {
				t.Errorf("the agent was offered %q, want %q", got, described)
			}
			call := asked.Output[len(asked.Output)-1].AsFunctionCall()
			if call.Name != "getLocation" || call.Arguments != `{"precise":true}` {
				t.Fatalf("the call is %+v", call)
			}
			output := responses.ResponseInputItemFunctionCallOutputParam{
				CallID: param.NewOpt(call.CallID), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String("Graz")},
			}
			done, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
				Model: "plain", Tools: tools, PreviousResponseID: openai.String(asked.ID),
				Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{{OfFunctionCallOutput: &output}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(done.OutputText()); got != "Graz." {
				t.Errorf("the answer ends with %q, want Graz.", got)
			}
		})
	}
}
