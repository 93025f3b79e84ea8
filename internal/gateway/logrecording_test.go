package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/replay"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// rich writes parts of every kind piece by piece, and retracts some.
func rich(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	op := func(kind event.Type, message, part string, f event.Field, text string, b *event.Body) event.Event {
		return event.Event{Type: kind, Message: message, Part: part, Field: f, Text: text, Body: b}
	}
	inner := func(e event.Event) event.Event { e.Turn = "inner"; return e }
	for _, e := range []event.Event{
		{Turn: "own", Type: event.TurnStart},
		op(event.MessageStart, "m", "", "", "", &event.Body{Role: event.Assistant}),
		op(event.PartStart, "m", "s", "", "", &event.Body{Kind: event.KindStatus}),
		op(event.PartReplace, "m", "s", event.Text, "Looking…", nil),
		op(event.PartReplace, "m", "s", event.Text, "Found it", nil),
		op(event.PartEnd, "m", "s", "", "", nil),
		op(event.PartStart, "m", "t", "", "", &event.Body{Kind: event.KindTool, Name: "bash", Call: "c"}),
		op(event.PartAppend, "m", "t", event.Input, `{"a":`, nil),
		op(event.PartAppend, "m", "t", event.Input, `1}`, nil),
		op(event.PartUpdate, "m", "t", "", "", &event.Body{State: event.PartRunning}),
		op(event.PartAppend, "m", "t", event.Output, "grüße\n", nil),
		op(event.PartAppend, "m", "t", event.Stderr, "warning\n", nil),
		op(event.PartAppend, "m", "t", event.Output, "日本\n", nil),
		op(event.PartUpdate, "m", "t", "", "", &event.Body{State: event.PartDone}),
		op(event.PartEnd, "m", "t", "", "", nil),
		inner(event.Event{Type: event.TurnStart, Body: &event.Body{Agent: "helper", Parent: "own"}}),
		inner(op(event.MessageStart, "n", "", "", "", &event.Body{Role: event.Assistant})),
		inner(op(event.PartStart, "n", "p", "", "", &event.Body{Kind: event.KindText})),
		inner(op(event.PartAppend, "n", "p", event.Text, "I help.", nil)),
		inner(op(event.PartEnd, "n", "p", "", "", nil)),
		inner(op(event.MessageEnd, "n", "", "", "", nil)),
		inner(event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}}),
		op(event.PartStart, "m", "x", "", "", &event.Body{Kind: event.KindText}),
		op(event.PartAppend, "m", "x", event.Text, "One ", nil),
		op(event.PartAppend, "m", "x", event.Text, "two", nil),
		op(event.PartReplace, "m", "x", event.Text, "Anew: ", nil),
		op(event.PartAppend, "m", "x", event.Text, "three", nil),
		op(event.PartEnd, "m", "x", "", "", nil),
		op(event.MessageEnd, "m", "", "", "", nil),
	} {
		if e.Turn == "" {
			e.Turn = "own"
		}
		if err := out.Emit([]event.Event{e}, nil); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return out.End(event.Completed, "", &event.Usage{Model: "x", Output: 7})
}

// said returns the parts that agents have written in a conversation, without ids and times.
func said(t *testing.T, tr *transcript.Transcript) string {
	t.Helper()
	var all []any
	for _, m := range tr.Messages {
		if m.Role == event.User {
			continue
		}
		for _, p := range m.Parts {
			all = append(all, map[string]any{
				"kind": p.Kind, "name": p.Name, "state": p.State, "history": p.History(), "ended": p.Final,
				"text": p.Text(event.Text), "input": p.Text(event.Input), "output": p.Text(event.Output), "stderr": p.Text(event.Stderr),
			})
		}
	}
	for _, turn := range tr.Turns {
		all = append(all, map[string]any{"outcome": turn.Outcome, "usage": turn.Usage, "inner": turn.Parent != ""})
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A turn from the log can be replayed with the same result, before and after compaction.
func TestTold(t *testing.T) {
	h := newTestGateway(t, memory.New(), one(agentFunc(rich)), nil)
	defer h.close()
	conv := h.create(alice)
	ack := h.send(conv, "go")
	h.ended(conv, ack.Turn)
	want := said(t, h.view(conv))
	for _, state := range []string{"as it was written", "settled"} {
		if state == "settled" {
			_, release, err := h.PauseCompaction(t.Context(), alice, conv)
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		var tape bytes.Buffer
		if err := h.WriteLogRecording(t.Context(), alice, ack.Turn, &tape); err != nil {
			t.Fatal(err)
		}
		lines, head := frames(t, tape.Bytes())
		if len(lines) < 28 || head.Dialect != "leat" || head.Turn != ack.Turn || head.Agent != "a" {
			t.Errorf("%s: %d lines, %+v", state, len(lines), head)
		}
		file := filepath.Join(t.TempDir(), "take.jsonl")
		if err := os.WriteFile(file, tape.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		player, err := replay.New(replay.Config{File: file, Dialect: leat.Dialect()})
		if err != nil {
			t.Fatal(err)
		}
		again := newTestGateway(t, memory.New(), one(player), nil)
		other := again.create(alice)
		played := again.send(other, "go")
		again.ended(other, played.Turn)
		if d := cmp.Diff(want, said(t, again.view(other))); d != "" {
			t.Errorf("%s: replayed it is another (-said +replayed):\n%s\n%s", state, d, tape.String())
		}
		again.close()
	}
	for who, want := range map[*gateway.Principal]error{&bob: gateway.ErrNotFound} {
		if err := h.WriteLogRecording(t.Context(), *who, ack.Turn, &bytes.Buffer{}); !errors.Is(err, want) {
			t.Errorf("%+v: %v", *who, err)
		}
	}
}

// The trace of a running turn grows, and can be read from a position.
func TestTraceOfARunningTurn(t *testing.T) {
	more := make(chan struct{})
	h := newTestGateway(t, memory.New(), one(agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		for _, text := range []string{"one ", "two ", "three"} {
			if err := out.Text(text); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
			<-more
		}
		return nil
	})), nil)
	defer h.close()
	conv := h.create(alice)
	ack := h.send(conv, "go")
	h.until(conv, func(tr *transcript.Transcript) bool { return tr.Visible(ack.Turn) == "one " })
	first, err := h.Trace(t.Context(), alice, ack.Turn, 0)
	if err != nil || len(first.Commits) == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	last := first.Commits[len(first.Commits)-1]
	if last.Type != event.PartAppend || last.End != 4 || last.Commit < last.Arrival || last.Commit > time.Now().UnixMilli() {
		t.Errorf("%+v", last)
	}
	more <- struct{}{}
	h.until(conv, func(tr *transcript.Transcript) bool { return tr.Visible(ack.Turn) == "one two " })
	next, err := h.Trace(t.Context(), alice, ack.Turn, last.Seq)
	if err != nil || len(next.Commits) != 1 || next.Commits[0].End != 8 || next.Commits[0].Seq <= last.Seq {
		t.Errorf("%+v, %v", next, err)
	}
	more <- struct{}{}
	more <- struct{}{}
	h.ended(conv, ack.Turn)
	all, err := h.Trace(t.Context(), alice, ack.Turn, 0)
	if n := len(all.Commits); err != nil || all.Commits[n-1].Type != event.TurnEnd || n <= len(first.Commits)+1 {
		t.Errorf("%+v, %v", all, err)
	}
}
