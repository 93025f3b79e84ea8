package compat

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/dialect/openairesponses"
)

// As TestOpenAIRecordings, of the Responses API. The client has no accumulator of these: its typed events are put together
// here, each text of its deltas and then as it is when it is whole, for one of the recordings leaves deltas out.
func TestResponsesRecordings(t *testing.T) {
	d := openairesponses.Dialect()
	for _, path := range append(dialecttest.Glob(t, "openai-responses/*"), dialecttest.Glob(t, "letta-appserver/openai-api/responses-*")...) {
		for i, body := range answers(stream(t, d, path, true)) {
			t.Run(fmt.Sprintf("%s-%d", filepath.Base(path), i+1), func(t *testing.T) {
				client := responsesTold(t, upstream(t, body))
				if len(client.Texts)+len(client.Tools) == 0 && !client.Failed {
					t.Error("the client has nothing")
				}
				if own[filepath.Base(path)] {
					client.Tools = nil
				}
				same(t, client, decoded(t, d, body))
			})
		}
	}
}

// own are the recordings where the server itself runs the functions that its response calls, as its further items say. They
// are calls to the client all the same; Leat's decoder has them as done.
var own = map[string]bool{"responses-tool.sse": true}

// answers takes a recording of several responses apart.
func answers(body []byte) [][]byte {
	var all [][]byte
	for f := range bytes.SplitAfterSeq(body, []byte("\n\n")) {
		if len(all) == 0 || bytes.Contains(f, []byte(`"type":"response.created"`)) {
			all = append(all, nil)
		}
		last := &all[len(all)-1]
		*last = append(*last, f...)
	}
	return all
}

// responsesTold is what the official client makes of a stream.
func responsesTold(t *testing.T, url string) told {
	t.Helper()
	client := openaiClient(url, "key")
	s := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
		Model: "any", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	})
	defer func() { _ = s.Close() }()
	var v told
	var texts, reasoning grown
	for s.Next() {
		switch e := s.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			texts.add(fmt.Sprint(e.OutputIndex, e.ContentIndex), e.Delta)
		case responses.ResponseTextDoneEvent:
			texts.add(fmt.Sprint(e.OutputIndex, e.ContentIndex), "")
			texts.all[len(texts.all)-1] = e.Text
		case responses.ResponseRefusalDeltaEvent:
			texts.add(fmt.Sprint(e.OutputIndex, e.ContentIndex), e.Delta)
		case responses.ResponseReasoningSummaryTextDeltaEvent:
			reasoning.add(fmt.Sprint(e.OutputIndex, e.SummaryIndex), e.Delta)
		case responses.ResponseReasoningTextDeltaEvent:
			reasoning.add(fmt.Sprint(e.OutputIndex, e.ContentIndex), e.Delta)
		case responses.ResponseOutputItemDoneEvent:
			switch call := e.Item.AsAny().(type) {
			case responses.ResponseFunctionToolCall:
				v.Tools = append(v.Tools, call.Name+" "+compact(t, call.Arguments))
			case responses.ResponseOutputItemLocalShellCall:
				v.Tools = append(v.Tools, "local_shell "+compact(t, call.Action.RawJSON()))
			}
		case responses.ResponseFailedEvent, responses.ResponseErrorEvent:
			v.Failed = true
		}
	}
	if s.Err() != nil {
		v.Failed = true
	}
	v.Texts, v.Reasoning = texts.all, reasoning.all
	return v
}

// grown are texts that grow by deltas, in the order of their first.
type grown struct {
	keys, all []string
}

func (g *grown) add(key, delta string) {
	if n := len(g.keys); n == 0 || g.keys[n-1] != key {
		g.keys, g.all = append(g.keys, key), append(g.all, "")
	}
	g.all[len(g.all)-1] += delta
}
