package agenttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
)

func TestCallbacksOfTheEmitter(t *testing.T) {
	agenttest.Callbacks(t, func(t *testing.T, script agenttest.Script) agenttest.Playback {
		return agenttest.Play(t, script.Agent(nil), agent.Input{})
	})
}

func TestCallbacksOfElizaActions(t *testing.T) {
	agenttest.Callbacks(t, func(t *testing.T, script agenttest.Script) agenttest.Playback {
		return agenttest.Play(t, lines(script.Actions(t)), agent.Input{})
	})
}

// lines is an agent whose upstream sends eliza-actions.
type lines [][]byte

func (l lines) Run(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	stream := dialect.NewStream(elizaactions.Dialect())
	for _, line := range l {
		err := out.Decode(func() ([]event.Event, json.RawMessage, error) {
			ops, err := stream.Write(line)
			return ops, nil, err
		})
		if err != nil {
			return err
		}
	}
	return out.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, err := stream.Close()
		return ops, nil, err
	})
}

// The suite detects each kind of fault.
func TestSuiteSeesFaults(t *testing.T) {
	c := agenttest.Cases()[1]
	final := c.Views[len(c.Views)-1]
	reload := c.Reload
	good := agenttest.Playback{Views: c.Views, Snapshots: []agenttest.Snapshot{{Name: "r", Visible: final, History: c.History, Reload: &reload}}}
	if d := c.Diff(good); d != nil {
		t.Fatalf("a good play differs: %q", d)
	}
	merged := good
	merged.Views = []string{"", c.Views[0], c.Views[3], final}
	if d := c.Diff(merged); d != nil {
		t.Fatalf("a play whose steps were merged differs: %q", d)
	}
	twice := final + "\n\n" + final
	faults := map[string]func(*agenttest.Playback){
		"statuses piled up":  func(p *agenttest.Playback) { p.Views = append(slices.Clone(c.Views[:3]), c.Views[2]+c.Views[3], final) },
		"views out of order": func(p *agenttest.Playback) { p.Views = []string{c.Views[3], c.Views[2], final} },
		"the end not seen":   func(p *agenttest.Playback) { p.Views = c.Views[:5] },
		"nothing seen":       func(p *agenttest.Playback) { p.Views = nil },
		"nobody read":        func(p *agenttest.Playback) { p.Snapshots = nil },
		"another text":       func(p *agenttest.Playback) { p.Snapshots[0].Visible += " " },
		"history cut":        func(p *agenttest.Playback) { p.Snapshots[0].History = c.History[1:] },
		"history doubled":    func(p *agenttest.Playback) { p.Snapshots[0].History = append(slices.Clone(c.History), c.History...) },
		"outcome twice":      func(p *agenttest.Playback) { p.Snapshots[0].Reload = &twice },
	}
	for name, spoil := range faults {
		p := good
		p.Snapshots = slices.Clone(good.Snapshots)
		spoil(&p)
		if c.Diff(p) == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

// A script that ends with an error returns that error from Run, and it isn't emitted as text.
func TestFailingScript(t *testing.T) {
	script := agenttest.Script{agenttest.Text("a"), {Kind: agenttest.Fail, Text: "no"}}
	err := script.Agent(nil).Run(t.Context(), agent.Input{}, agent.NewEmitter(t.Context(), &nowhere{}))
	var shown *agent.Error
	if !errors.As(err, &shown) || shown.Message != "no" {
		t.Errorf("Run returned %v, want the script's error", err)
	}
}

type nowhere struct{ agent.Sink }

func (nowhere) Emit(context.Context, []event.Event, json.RawMessage) error { return nil }
