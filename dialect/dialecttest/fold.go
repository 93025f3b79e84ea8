// Operations folded as a gateway folds them, for comparisons.

package dialecttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Turn is the id of the turn into which streams are folded.
const Turn = "turn"

// start is the time of the first event, in epoch milliseconds. Each further event is at least one millisecond later.
const start = 1_000_000

// Folder maps the operations of a stream to events and folds them into a transcript. The ids are the same in every run: messages and further
// turns are "id1", "id2", ... Upstream turns become siblings instead of nested turns, so that recordings of a whole connection can
// be folded too.
type Folder struct {
	Events     []event.Event // all events so far, with the seqs that a log would assign
	Transcript transcript.Transcript
	Mapper     *dialect.Mapper
	ids        int // the number of ids generated
}

// NewFolder returns a folder in which the turn [Turn] has started.
func NewFolder() *Folder {
	f := &Folder{}
	f.Mapper = f.mapper()
	if err := f.apply(event.Event{Type: event.TurnStart, Turn: Turn, At: start}); err != nil {
		panic(err) // can't happen: any turn.start applies to an empty transcript
	}
	return f
}

// mapper returns a new mapper for the turn, whose ids continue those of the mappers before.
func (f *Folder) mapper() *dialect.Mapper {
	m := dialect.NewMapper(Turn, func() string {
		f.ids++
		return fmt.Sprintf("id%d", f.ids)
	})
	m.Flat = true
	return m
}

// Fold maps and applies the next operations. It maps them one by one, so that an error leaves the folder with everything before it.
func (f *Folder) Fold(ops []event.Event) error {
	for i := range ops {
		events, err := f.Mapper.Map(ops[i:i+1], start+int64(len(f.Events)))
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := f.apply(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply assigns the next seq to an event and folds it.
func (f *Folder) apply(e event.Event) error {
	e.Seq = int64(len(f.Events)) + 1
	f.Events = append(f.Events, e)
	return f.Transcript.Apply(&e)
}

// Restart replaces the mapper by one that is restored from the state of the old one and the transcript, as after a restart of the gateway. It
// fails if the new mapper knows another number of keys.
func (f *Folder) Restart() error {
	// The state has the keys; lengths and ends are taken from the transcript, as from a stored log.
	st, err := f.Mapper.State()
	if err != nil {
		return err
	}
	m := f.mapper()
	if err := m.Restore(st, &f.Transcript); err != nil {
		return err
	}
	if m.Keys() != f.Mapper.Keys() {
		return fmt.Errorf("the restored mapper knows %d keys, not %d", m.Keys(), f.Mapper.Keys())
	}
	m.DroppedOps = f.Mapper.DroppedOps // isn't part of the state
	f.Mapper = m
	return nil
}

// Fold returns the transcript of the operations of a stream. The test fails if one of them doesn't apply.
func Fold(t testing.TB, ops []event.Event) *transcript.Transcript {
	t.Helper()
	f := NewFolder()
	if err := f.Fold(ops); err != nil {
		t.Fatalf("fold: %v", err)
	}
	return &f.Transcript
}

// Visible returns the visible texts of the transcript's assistant messages, joined by blank lines.
func Visible(tr *transcript.Transcript) string {
	var texts []string
	for _, m := range tr.Messages {
		if v := m.Visible(); m.Role == event.Assistant && v != "" {
			texts = append(texts, v)
		}
	}
	return strings.Join(texts, event.JoinBlank)
}

// Dump returns a transcript's contents without times, one line for each turn, message and part, in the format of the golden files. Values are
// JSON, and empty ones are left out, so that a new field doesn't change the files of streams without it.
func Dump(tr *transcript.Transcript) string {
	var b strings.Builder
	// line writes a label and pairs of a name and a value.
	line := func(indent, label string, pairs ...any) {
		b.WriteString(indent + label)
		for i := 0; i < len(pairs); i += 2 {
			v, err := json.Marshal(pairs[i+1])
			if err != nil {
				// A panic, because Dump has no test to fail.
				panic(err) // can't happen: all values are plain data
			}
			if s := string(v); s != `""` && s != "null" && s != "0" && s != "false" {
				fmt.Fprintf(&b, " %s=%s", pairs[i], s)
			}
		}
		b.WriteByte('\n')
	}
	if tr.Title != "" || tr.Metadata != nil {
		line("", "conversation", "title", tr.Title, "metadata", tr.Metadata)
	}
	// Times and seqs are left out: they depend on how the operations are grouped, not on what they mean.
	for _, t := range tr.Turns {
		line("", "turn "+t.ID, "parent", t.Parent, "state", t.State, "outcome", t.Outcome, "reason", t.Reason, "error", t.Error,
			"usage", t.Usage, "phase", t.Phase, "step", t.Step, "model", t.Model, "upstream", t.Upstream, "requests", t.Requests)
	}
	for _, m := range tr.Messages {
		line("", "message "+m.ID, "turn", m.Turn, "role", m.Role, "state", m.State, "ended", m.Final, "stop", m.StopReason)
		for _, p := range m.Parts {
			line("  ", p.ID+" "+string(p.Kind), "name", p.Name, "call", p.Call, "type", p.MediaType, "join", p.Join, "state", p.State,
				"title", p.Title, "media", p.Media, "error", p.Error, "data", p.Data, "ended", p.Final,
				"text", p.Text(event.Text), "input", p.Text(event.Input), "output", p.Text(event.Output), "stderr", p.Text(event.Stderr),
				"history", p.History())
		}
	}
	return b.String()
}
