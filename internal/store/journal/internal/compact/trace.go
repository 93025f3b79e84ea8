package compact

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Trace adds recent events to a turn's trace, if it doesn't have them yet. The events need not be compacted, and the turn need not
// have ended.
func Trace(t *journal.Trace, recent []event.Event, commits []Commit, readCompacted func() ([]event.Event, error)) error {
	var before []event.Event
	if changesCompacted(recent) {
		var err error
		if before, err = readCompacted(); err != nil {
			return err
		}
	}
	has := int64(0)
	if n := len(t.Commits); n > 0 {
		has = t.Commits[n-1].Seq
	}
	for _, turn := range traces(before, recent, commits) {
		if turn.Turn != t.Turn {
			continue
		}
		for _, c := range turn.Commits {
			if c.Seq > has {
				t.Commits = append(t.Commits, c)
			}
		}
		for _, r := range turn.Replacements {
			if r.Seq > has {
				t.Replacements = append(t.Replacements, r)
			}
		}
	}
	return nil
}

// traces returns the trace of each turn in recent, in the order of their first events. before are the compacted events, which hold
// the texts of earlier messages. It is nil if recent changes none of them.
func traces(before, recent []event.Event, commits []Commit) []journal.Trace {
	texts := watch(recent)
	for i := range before {
		texts.apply(&before[i])
	}
	var result []journal.Trace
	at := map[string]int{}     // index in result by turn
	room := []int{}            // bytes left for replaced texts, by index in result
	var current *journal.Trace // the trace of the previous event
	t := -1
	for i := range recent {
		e := &recent[i]
		for len(commits) > 1 && e.Seq > commits[0].Last {
			commits = commits[1:]
		}
		if e.Turn == "" {
			texts.apply(e)
			continue
		}
		if current == nil || current.Turn != e.Turn {
			var ok bool
			if t, ok = at[e.Turn]; !ok {
				t = len(result)
				at[e.Turn], room = t, append(room, journal.MaxReplaced)
				result = append(result, journal.Trace{Turn: e.Turn, Commits: make([]journal.TraceCommit, 0, len(recent)-i)})
			}
			current = &result[t]
		}
		entry := journal.TraceCommit{Arrival: e.At, Commit: commits[0].At, Seq: e.Seq, Type: e.Type, Message: e.Message, Part: e.Part}
		if e.Op() {
			entry.Field, entry.End = string(e.Field), end(e)
		}
		current.Commits = append(current.Commits, entry)
		if old := texts.apply(e); old != "" && len(old) <= room[t] {
			room[t] -= len(old)
			current.Replacements = append(current.Replacements, journal.TraceReplace{Seq: e.Seq, Message: e.Message, Part: e.Part, Field: string(e.Field), Text: old})
		}
	}
	return result
}

// texts are the current contents of fields that are replaced later.
type texts map[field]*strings.Builder

// watch returns empty texts for the fields that recent replaces. Other fields aren't tracked, because their texts would only
// cost memory.
func watch(recent []event.Event) texts {
	var t texts
	for i := range recent {
		if e := &recent[i]; e.Type == event.PartReplace {
			if t == nil {
				t = texts{}
			}
			t[field{e.Message, e.Part, e.Field}] = &strings.Builder{}
		}
	}
	return t
}

// apply applies e and returns the text that it replaces.
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
