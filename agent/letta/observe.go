package letta

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
)

var errState = errors.New("the state of the run names no message")

// Observe implements [agent.Follower]: the run of another client is taken up as a turn is that has lost its connection.
func (k *socket) Observe(ctx context.Context, in agent.Input, raw json.RawMessage, out *agent.Emitter) error {
	t := newTurn(in, out, k.dialect)
	out.Messages(letta.Code().Name)
	if err := t.restore(raw); err != nil {
		return err
	}
	if st := t.noted(); st.Row == "" {
		return errState
	}
	w := &talk{k: k, t: t, id: t.noted().Message, observed: true}
	k.enter(ctx, w)
	return k.end(ctx, w, errBroken)
}

// handsOver reports whether a frame says that a run has taken up the message of a turn of Leat, which shows the rest of the run.
func (w *talk) handsOver(f *envelope) bool {
	if !w.observed {
		return false
	}
	if f.Type == "stream_delta" {
		return f.Delta.Type == rowUser && w.k.runs(f.Delta.Otid)
	}
	for run, ids := range f.Loop.By {
		if slices.Contains(f.Loop.Active, run) && slices.Contains(ids, w.id) && slices.ContainsFunc(ids, w.k.runs) {
			return true
		}
	}
	return false
}

// leave ends an observed run which a turn of Leat shows from here on. What its tools give is still its own.
func (w *talk) leave(f *envelope, b []byte) error {
	if f.tool() && w.t.knows(f.Delta.Call) {
		if err := w.t.decode(dialect.Frame{Data: b}); err != nil {
			return err
		}
	}
	if w.t.busy() && f.Type != "turn_finished" {
		return nil
	}
	return w.t.decode(dialect.Frame{Data: frameEnded})
}

// tool reports whether a frame is of a tool that runs or has run.
func (f *envelope) tool() bool {
	switch f.Delta.Type {
	case "client_tool_start", "client_tool_end", rowReturn:
		return true
	}
	return false
}

// knows reports whether a call has been in the turn.
func (t *turn) knows(call string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dec.Knows(call)
}

// recall fills in what the history has of the turn, and reports whether the turn runs.
func (w *talk) recall(list []byte, a *arrival) (alive bool, err error) {
	rows, _, err := parseRows(list)
	if err != nil {
		return false, err
	}
	a.rows = rows
	all := exchanges(rows, a.turns)
	at := slices.IndexFunc(all, func(x *exchange) bool { return w.began(x) })
	if at < 0 {
		// The server does not name messages in its history, or it has forgotten this one.
		alive = a.alive || a.named && a.ended
		if w.observed || !alive && !w.t.begun() {
			return alive && !w.observed, nil
		}
		return alive, w.t.decode(dialect.Frame{Data: list})
	}
	x := all[at]
	a.rows, a.found = x.rows, true
	alive = a.runs(at == len(all)-1)
	if !w.t.begun() {
		if err := w.t.decode(dialect.Frame{Data: frameRuns}); err != nil {
			return alive, err
		}
	}
	if err := w.t.decode(dialect.Frame{Data: x.list()}); err != nil {
		return alive, err
	}
	if w.observed && !alive && x.whole() {
		return false, w.t.decode(dialect.Frame{Data: frameEnded})
	}
	return alive, nil
}

// began reports whether a run began with the turn's message, or took it up.
func (w *talk) began(x *exchange) bool {
	if st := w.t.noted(); st.Row != "" {
		return x.users[0].key() == st.Row
	}
	return w.id != "" && x.has(w.id)
}
