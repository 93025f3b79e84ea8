package letta

import (
	"sync/atomic"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
)

// tally counts the decoded frames of each dialect.
type tally map[string]*atomic.Int64

// counter is a decoder that is counted, as the gateway's metrics do.
type counter struct {
	dialect.Decoder
	frames *atomic.Int64
}

func (c *counter) Unwrap() dialect.Decoder { return c.Decoder }

func (c *counter) Decode(f dialect.Frame) ([]event.Event, error) {
	c.frames.Add(1)
	return c.Decoder.Decode(f)
}

// registry returns all dialects with decoders that are counted.
func (t tally) registry() dialect.Registry {
	list := all.Registry().List()
	for i, d := range list {
		n, inner := &atomic.Int64{}, d.Decoder
		t[d.Name] = n
		list[i].Decoder = func() dialect.Decoder { return &counter{inner(), n} }
	}
	return dialect.NewRegistry(list...)
}

// Turns decode with the registry that the kind was given, so that the gateway counts their frames.
func TestFramesAreCounted(t *testing.T) {
	n := tally{}
	registry := n.registry()
	v1 := newV1(t)
	v1.scripts = [][]string{plainRun(spoken...)}
	a, err := newAgent(config{URL: v1.srv.URL, Agent: "agent-1", Background: true}, registry)
	if err != nil {
		t.Fatal(err)
	}
	rest := a.(*restAgent)
	rest.times = quick
	t.Cleanup(rest.Close)
	newStage(t).run(rest, "hello").want(event.Completed, "", said)
	app := newAppServer(t)
	app.scripts = [][]string{{"Hello."}}
	if a, err = newAgent(config{URL: app.url(), Agent: "agent-1", Background: true}, registry); err != nil {
		t.Fatal(err)
	}
	socket := a.(*socketAgent)
	socket.times = quick
	newStage(t).run(socket, "hello").want(event.Completed, "", "Hello.")
	for _, name := range []string{"letta", "letta-code"} {
		if n[name].Load() == 0 {
			t.Errorf("no frame of %s is counted", name)
		}
	}
}
