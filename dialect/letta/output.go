package letta

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// appendOutput takes what a running tool has printed so far. The App Server streams snapshots of it: first all of it, and beyond some
// 30,000 characters only a window of its end. Nothing that a reader has seen is taken back: a window adds what follows the end of
// what was shown. If that end is not in the window, or is there more than once, nobody can tell where the window goes on, and the
// output stays as it is.
func (d *Decoder) appendOutput(t *tool, snapshot string) {
	if t.IsPartial {
		return // what would be added does not follow what was shown
	}
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

// setOutput takes what a tool gave in the end. The App Server shortens a long output, of which readers may have seen more: then
// they keep that, and the data returned marks it.
func (d *Decoder) setOutput(t *tool, text string) (mark json.RawMessage) {
	next := t.Output
	if op, _ := next.Next(text); op == event.PartReplace && t.Tail != "" && int64(len(text)) < t.Output.Len() {
		mark, _ = json.Marshal(map[string]int{storedBytes: len(text)})
		return mark
	}
	d.emitSnapshot(t, event.Output, &t.Output, text)
	return nil
}

// storedBytes is the key of a tool's data that tells how many bytes of its output the upstream has stored, if readers saw more.
const storedBytes = "storedBytes"
