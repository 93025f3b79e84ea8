package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
)

// pulse is a sink that counts calls that report progress, and records operations and the last state.
type pulse struct {
	alive atomic.Int64
	ops   []event.Event
	state string
}

func (p *pulse) Emit(_ context.Context, ops []event.Event, state json.RawMessage) error {
	p.alive.Add(1)
	p.ops = append(p.ops, ops...)
	if state != nil {
		p.state = string(state)
	}
	return nil
}

func (*pulse) Flush(context.Context) error { return nil }

func (*pulse) Wait(context.Context, event.Request) (event.Answer, error) {
	return event.Answer{}, errors.New("no user")
}

func (p *pulse) ReportProgress() { p.alive.Add(1) }

const line = `{"type":"chunk","text":"hey"}` + "\n"

// Single bytes count as progress only when their line is complete, so an upstream that never ends a line is silent.
func TestHalfALineIsNoSignOfLife(t *testing.T) {
	p := &pulse{}
	s := agent.NewStream(agent.NewEmitter(t.Context(), p), elizaactions.Dialect())
	if _, err := s.ReadFrom(iotest.OneByteReader(strings.NewReader(line + line + `{"type":"chunk`))); !errors.Is(err, dialect.ErrCutShort) {
		t.Fatal(err)
	}
	// Two lines, the operations at the end of the incomplete third line, and the end itself.
	if n := p.alive.Load(); n > 5 {
		t.Errorf("%d signs of life", n)
	}
}

// Blank lines, comments and frames of unknown types are not progress, even if they change the decoder's state.
func TestKeepAlivesAreNoSignsOfLife(t *testing.T) {
	for name, tt := range map[string]struct {
		d    dialect.Dialect
		body string
	}{
		"lines": {elizaactions.Dialect(), "\n\n" + `{"type":"beat"}` + "\n" + `{"type":"chunk","text":""}` + "\n"},
		"sse":   {anthropic.Dialect(), ": beat\n\n\n\nevent: x\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pulse{}
			s := agent.NewStream(agent.NewEmitter(t.Context(), p), tt.d)
			if _, err := s.ReadFrom(strings.NewReader(tt.body)); !errors.Is(err, dialect.ErrCutShort) {
				t.Fatal(err)
			}
			if n := p.alive.Load(); n > 0 {
				t.Errorf("%d signs of life", n)
			}
		})
	}
}

// A filter can change operations and store a state, and a stream continues from the state of an existing decoder.
func TestThrough(t *testing.T) {
	d := dialect.NewStream(elizaactions.Dialect())
	if _, err := d.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
	p := &pulse{}
	s := agent.ResumeStream(agent.NewEmitter(t.Context(), p), d)
	boom := errors.New("boom")
	s.Filter = func(ops []event.Event) ([]event.Event, json.RawMessage, error) {
		for i := range ops {
			if ops[i].Text == "stop" {
				return ops[:i], nil, boom
			}
			ops[i].Text = strings.ToUpper(ops[i].Text)
		}
		return ops, json.RawMessage(`"kept"`), nil
	}
	_, err := s.ReadFrom(iotest.OneByteReader(strings.NewReader(line + strings.Replace(line, "hey", "stop", 1) + line)))
	if !errors.Is(err, boom) || p.state != `"kept"` || len(p.ops) != 1 || p.ops[0].Type != event.PartAppend || p.ops[0].Text != "HEY" {
		t.Errorf("%v, state %s, %+v", err, p.state, p.ops)
	}
}
