package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// toolReporter says which tools it was offered, once it may. It can be resumed.
type toolReporter struct{ may chan struct{} }

func (a toolReporter) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	select {
	case <-a.may:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	tools, err := json.Marshal(in.Tools)
	if err != nil {
		return err
	}
	return out.Text(string(tools))
}

func (a toolReporter) Resume(ctx context.Context, in agent.Input, _ json.RawMessage, out *agent.Emitter) error {
	return a.Run(ctx, in, out)
}

// offering returns the send of a message with tools of these names.
func offering(text string, names ...string) gateway.Command {
	c := gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}}
	for _, name := range names {
		c.Tools = append(c.Tools, agent.ClientTool{Name: name, Description: "does " + name, Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	return c
}

// offered returns the answer of a toolReporter that is offered one tool.
func offered(name string) string {
	return fmt.Sprintf(`[{"name":%q,"description":"does %s","parameters":{"type":"object"}}]`, name, name)
}

// Each turn has the tools of its message, also after it has waited in the queue. When it ends, they are deleted.
func TestTurnsHaveTheToolsOfTheirMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := toolReporter{may: make(chan struct{})}
		h := newTestGateway(t, nil, one(a), nil)
		defer h.close()
		c := h.create(admin)
		turns := []string{
			h.do(c, offering("first", "map")).Turn,
			h.do(c, offering("second", "camera")).Turn,
			h.do(c, offering("third")).Turn,
		}
		synctest.Wait()
		stored := func(turn string) bool {
			_, err := h.journal.Get(t.Context(), journalkey.TurnTools(turn))
			if err != nil && !errors.Is(err, journal.ErrNotFound) {
				t.Fatal(err)
			}
			return err == nil
		}
		if !stored(turns[0]) || !stored(turns[1]) || stored(turns[2]) {
			t.Error("the tools of unfinished turns aren't stored, or a turn without tools has some")
		}
		close(a.may)
		h.ended(c, turns[2])
		wantTexts(t, h.view(c), "user: first", "user: second", "user: third",
			"assistant: "+offered("map"), "assistant: "+offered("camera"), "assistant: null")
		for _, turn := range turns {
			if stored(turn) {
				t.Error("the tools of a turn are stored after its end")
			}
		}
	})
}

// A gateway is killed while one turn runs and another one waits. Both have their tools in the next process.
func TestToolsSurviveAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := toolReporter{may: make(chan struct{})}
		h := newTestGateway(t, nil, one(blocked), nil)
		c := h.create(admin)
		h.do(c, offering("first", "map"))
		second := h.do(c, offering("second", "camera")).Turn
		synctest.Wait()
		disk := h.kill()
		time.Sleep(time.Minute)

		free := toolReporter{may: make(chan struct{})}
		close(free.may)
		h2 := newTestGateway(t, disk, one(free), nil)
		defer h2.close()
		h2.ended(c, second)
		wantTexts(t, h2.view(c), "user: first", "user: second", "assistant: "+offered("map"), "assistant: "+offered("camera"))
		h.close()
	})
}

// A running turn can't be offered more tools, so a message with tools isn't steered into it.
func TestAMessageWithToolsIsNotSteered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := toolReporter{may: make(chan struct{})}
		h := newTestGateway(t, nil, one(steered{a.Run, func(agent.Message) error { return nil }}), nil)
		defer h.close()
		c := h.create(admin)
		h.send(c, "first")
		synctest.Wait()
		if got := h.send(c, "plain").State; got != event.MessageSteered {
			t.Errorf("a message without tools is %s, want steered", got)
		}
		ack := h.do(c, offering("second", "map"))
		if ack.State != event.MessageQueued {
			t.Errorf("a message with tools is %s, want queued", ack.State)
		}
		close(a.may)
		h.ended(c, ack.Turn)
	})
}

func TestToolsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := toolReporter{may: make(chan struct{})}
		close(a.may)
		h := newTestGateway(t, nil, one(a), nil)
		defer h.close()
		c := h.create(admin)
		names := make([]string, 129)
		for i := range names {
			names[i] = fmt.Sprint("tool", i)
		}
		for name, tools := range map[string][]agent.ClientTool{
			"no name":        {{Description: "d"}},
			"long name":      {{Name: strings.Repeat("n", 129)}},
			"space":          {{Name: "a b"}},
			"control":        {{Name: "a\x00"}},
			"not UTF-8":      {{Name: "a\xff"}},
			"description":    {{Name: "a", Description: "\xff"}},
			"two of a name":  {{Name: "a"}, {Name: "a"}},
			"array":          {{Name: "a", Parameters: json.RawMessage(`[]`)}},
			"not JSON":       {{Name: "a", Parameters: json.RawMessage(`{`)}},
			"too many tools": offering("", names...).Tools,
		} {
			t.Log(name)
			command := offering("go")
			command.Tools = tools
			h.refused(c, command, gateway.ReasonInvalid)
		}
		large := offering("go", "a")
		large.Tools[0].Description = strings.Repeat("d", 256<<10)
		h.refused(c, large, gateway.ReasonTooLarge)

		// The limits themselves are accepted.
		turn := h.do(c, offering("most", names[:128]...)).Turn
		h.ended(c, turn)
		large = offering("largest", "a")
		large.Tools[0].Description = strings.Repeat("d", 256<<10-len("a")-len(large.Tools[0].Parameters))
		h.ended(c, h.do(c, large).Turn)
		bare := offering("bare")
		bare.Tools = []agent.ClientTool{{Name: "karte.öffnen", Parameters: json.RawMessage("null")}}
		h.ended(c, h.do(c, bare).Turn)
		if got := texts(h.view(c)); got[len(got)-1] != `assistant: [{"name":"karte.öffnen"}]` {
			t.Errorf("a tool without parameters is offered as %s", got[len(got)-1])
		}
	})
}

// A repetition of a send must offer the same tools.
func TestToolsBelongToTheIdempotencyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := toolReporter{may: make(chan struct{})}
		close(a.may)
		h := newTestGateway(t, nil, one(a), nil)
		defer h.close()
		c := h.create(admin)
		first := offering("go", "map")
		first.Key = "k"
		ack := h.do(c, first)
		h.ended(c, ack.Turn)
		if again := h.do(c, first); !again.Repeated || again.Turn != ack.Turn {
			t.Errorf("the repetition has the ack %+v, want %+v", again, ack)
		}
		other := offering("go", "camera")
		other.Key = "k"
		h.refused(c, other, gateway.ReasonConflict)
	})
}
