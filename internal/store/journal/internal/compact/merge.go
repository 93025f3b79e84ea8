package compact

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Commit is one commit of a log, for the traces.
type Commit struct {
	At   int64 // commit time, epoch milliseconds
	Last int64 // seq of its last event
}

// Result is the compacted form of a stretch of a log.
type Result struct {
	// ReplaceAll says that Events replace the whole compacted part of the log. Otherwise they follow it.
	ReplaceAll bool
	Events     []event.Event
	Traces     []journal.Trace
}

// Merge compacts recent events of a log. commits are the commits that wrote them. If the events change what is already compacted,
// Merge calls readCompacted and compacts both parts together. The usual turn changes nothing older, so its cost doesn't depend on
// the length of the log.
func Merge(recent []event.Event, commits []Commit, readCompacted func() ([]event.Event, error)) (Result, error) {
	if !changesCompacted(recent) {
		return Result{Events: transcript.Compact(recent), Traces: traces(nil, recent, commits)}, nil
	}
	before, err := readCompacted()
	if err != nil {
		return Result{}, err
	}
	events := append(before[:len(before):len(before)], recent...)
	return Result{ReplaceAll: true, Events: transcript.Compact(events), Traces: traces(before, recent, commits)}, nil
}

type field struct {
	message, part string
	field         event.Field
}

// changesCompacted reports whether an event changes something from before recent, such that both must be compacted together: an
// operation on a text, because each field has only one, an update of a part, or a truncate. Updates of turns and of the
// conversation fold the same either way. They don't count, or a log whose metadata changes with every turn would be rewritten every
// time.
func changesCompacted(recent []event.Event) bool {
	began := map[string]bool{}
	appended := map[field]bool{}
	for i := range recent {
		e := &recent[i]
		switch e.Type {
		case event.MessageAdd, event.MessageStart:
			began[e.Message] = true
		case event.PartAppend, event.PartReplace:
			k := field{e.Message, e.Part, e.Field}
			if !began[e.Message] || (!appended[k] && e.Type == event.PartAppend && e.Offset > 0) {
				return true
			}
			appended[k] = true
		case event.PartUpdate:
			if !began[e.Message] {
				return true
			}
		case event.ConversationTruncate:
			return true
		}
	}
	return false
}
