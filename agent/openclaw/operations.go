package openclaw

import (
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// operations returns the events of a run that has ended, or nil if its rows can't be decoded. It feeds the rows to a new
// decoder as the frames of a gateway.
func (a *gatewayAgent) operations(session, run string, rows []row, end []byte) []event.Event {
	frameOfRows, err := historyFrame(rows, run)
	if err != nil {
		return nil
	}
	d := a.config.Dialect.Decoder()
	var events []event.Event
	for _, frame := range [][]byte{helloFrame(numberedProtocol), sendResponse(run, session), frameOfRows, end} {
		ops, err := d.Decode(dialect.Frame{Data: frame})
		if err != nil {
			return nil
		}
		events = append(events, ops...)
	}
	if len(events) == 0 || events[len(events)-1].Type != event.TurnEnd {
		return nil
	}
	return addUncopiedFiles(events, run, filesOf(rows))
}

// addUncopiedFiles adds a part for each file of a run that has ended: files in its text, and files that only rows name. The
// gateway may have deleted them by now, so none is copied. Files of the rows are added before the message ends, or in a message
// made for them if the run has none.
func addUncopiedFiles(ops []event.Event, run string, files []historyFile) []event.Event {
	var events []event.Event
	hasMessage := false
	for _, op := range ops {
		op, m := withoutPath(op)
		hasMessage = hasMessage || op.Type == event.MessageStart
		atEnd := op.Type == event.MessageEnd || op.Type == event.TurnEnd
		if atEnd && len(files) > 0 {
			if !hasMessage {
				events = append(events, event.Event{Type: event.MessageStart, Turn: run, Message: run, Body: &event.Body{Role: event.Assistant}})
			}
			for _, f := range files {
				events = append(events, uncopiedFile(run, "file:"+f.id, f.name(), f.MIME)...)
			}
			if !hasMessage {
				events = append(events, event.Event{Type: event.MessageEnd, Turn: run, Message: run})
			}
			files = nil
		}
		events = append(events, op)
		if m != nil && !isWeb(m.Path) {
			if i := matchFile(files, m); i >= 0 {
				files = slices.Delete(files, i, i+1)
			}
			events = append(events, uncopiedFile(run, m.Part, m.Name, op.Body.Media.MIME)[1])
		}
	}
	return events
}

// uncopiedFile returns the events of a file's part: it begins, says why the file has no address, and ends.
func uncopiedFile(run, part, name, mime string) []event.Event {
	failure := &event.Error{Code: codeFile, Message: name + " was not copied: the run ended before it was read"}
	op := event.Event{Turn: run, Message: run, Part: part}
	begin, update, end := op, op, op
	begin.Type, begin.Body = event.PartStart, &event.Body{Kind: event.KindMedia, Media: &event.Media{Name: name, MIME: mime}}
	update.Type, update.Body = event.PartUpdate, &event.Body{Media: &event.Media{Name: name, MIME: mime, Alt: failure.Message}, Error: failure}
	end.Type = event.PartEnd
	return []event.Event{begin, update, end}
}
