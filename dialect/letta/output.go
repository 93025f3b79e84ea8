package letta

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// appendOutput handles the output so far of a running tool. The App Server sends snapshots: first of the whole output, and
// beyond about 30,000 characters only a window of its end. Text that readers have seen is never removed, so a window only
// appends what follows the end of the shown output. If that end isn't in the window, or appears more than once, the
// continuation is unknown, and the output stays as it is until the tool ends.
func (d *Decoder) appendOutput(t *tool, snapshot string) {
	if t.IsPartial {
		return // there is a gap after the shown output
	}
	// Next works on a copy: a snapshot that doesn't extend the output must not change it.
	next := t.Output
	op, added := next.Next(snapshot)
	if op == event.PartReplace {
		i := strings.LastIndex(snapshot, t.Tail)
		if t.Tail == "" || i < 0 || i != strings.Index(snapshot, t.Tail) {
			t.IsPartial = true
			return
		}
		added = snapshot[i+len(t.Tail):]
	}
	if added == "" {
		return
	}
	t.Output.Append(added)
	d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Field: event.Output, Text: added})
	t.Tail = strings.ToValidUTF8(snapshot[max(0, len(snapshot)-maxTail):], "")
}

// setOutput handles a tool's final output. The App Server shortens long outputs, so readers may have seen more than it has
// stored. They keep that then, and setOutput returns data for the part that says how much is stored.
func (d *Decoder) setOutput(t *tool, text string) (mark json.RawMessage) {
	next := t.Output
	if op, _ := next.Next(text); op == event.PartReplace && t.Tail != "" && int64(len(text)) < t.Output.Len() {
		mark, _ = json.Marshal(map[string]int{storedBytes: len(text)})
		return mark
	}
	d.emitSnapshot(t, event.Output, &t.Output, text)
	return nil
}

// storedBytes is the key in a tool's data for the number of output bytes that the upstream has stored, if readers have seen
// more.
const storedBytes = "storedBytes"
