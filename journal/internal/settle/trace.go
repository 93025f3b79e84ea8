package settle

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/journal"
)

// MaxReplaced bounds, in bytes, the superseded texts that the trace of a turn keeps.
const MaxReplaced = 256 << 10

// traces gives what is kept in time of each turn in commits, in order of their first events. before are the events of the
// log that the texts of earlier messages come from; nil where commits touch none.
func traces(before []event.Event, commits []Commit) []journal.Trace {
	texts := watch(commits)
	for i := range before {
		texts.apply(&before[i])
	}
	var out []journal.Trace
	at := map[string]int{} // index in out by turn
	room := map[string]int{}
	for _, c := range commits {
		for i := range c.Events {
			e := &c.Events[i]
			if e.Turn == "" {
				texts.apply(e)
				continue
			}
			t, ok := at[e.Turn]
			if !ok {
				t = len(out)
				at[e.Turn], room[e.Turn] = t, MaxReplaced
				out = append(out, journal.Trace{Turn: e.Turn})
			}
			entry := journal.TraceCommit{Arrival: e.At, Commit: c.At, Seq: e.Seq, Type: e.Type, Message: e.Message, Part: e.Part}
			if e.Op() {
				entry.Field, entry.End = string(e.Field), int64(len(e.Text))
				if e.Type == event.PartAppend {
					entry.End += e.Offset
				}
			}
			out[t].Commits = append(out[t].Commits, entry)
			if old := texts.apply(e); old != "" && len(old) <= room[e.Turn] {
				room[e.Turn] -= len(old)
				out[t].Replaced = append(out[t].Replaced, journal.TraceReplace{Seq: e.Seq, Message: e.Message, Part: e.Part, Field: string(e.Field), Text: old})
			}
		}
	}
	return out
}

// texts are the fields that something replaces, as they stand.
type texts map[field]*strings.Builder

func watch(commits []Commit) texts {
	var t texts
	for _, c := range commits {
		for i := range c.Events {
			if e := &c.Events[i]; e.Type == event.PartReplace {
				if t == nil {
					t = texts{}
				}
				t[field{e.Message, e.Part, e.Field}] = &strings.Builder{}
			}
		}
	}
	return t
}

// apply returns the text that e takes back.
func (t texts) apply(e *event.Event) string {
	if t == nil || !e.Op() {
		return ""
	}
	b := t[field{e.Message, e.Part, e.Field}]
	if b == nil {
		return ""
	}
	old := ""
	if e.Type == event.PartReplace {
		if b.String() != e.Text {
			old = b.String()
		}
		b.Reset()
	}
	b.WriteString(e.Text)
	return old
}
