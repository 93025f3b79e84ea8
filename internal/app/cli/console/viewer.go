package console

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/transcript"
)

// viewer knows what of a conversation has been printed and what is still drawn below it.
type viewer struct {
	items []item
	// printed has, by the key of an item, the part of its source that is printed: all of it, or the beginning of a
	// text that still grows.
	printed map[string]string
	// replacements are the keys of items whose printed text was replaced, until the new text is printed.
	replacements map[string]bool
	// finished has the messages and turns that are printed completely. They are skipped in later states.
	finished map[string]bool
	// order has the keys of finished, in the order in which they were printed. reset needs it to notice that messages
	// were removed.
	order []string
	// docs has the parsed texts of the items that are drawn, so that only the growth of a text is parsed for each
	// frame.
	docs map[string]*markup.Document
	// last is the kind of the item that was printed last. It decides whether an empty line follows.
	last itemKind
	// notes are lines of the program itself, which the next frame prints.
	notes []line
	// isAsked is true while a question is open. Then what is complete is printed, so that the answer is recorded below it.
	isAsked bool
}

func newViewer() viewer {
	return viewer{printed: map[string]string{}, replacements: map[string]bool{}, finished: map[string]bool{}, docs: map[string]*markup.Document{}}
}

// update takes the current state of the conversation. Items that are printed already are dropped, and what was
// printed wrongly is noted. It prints nothing: the lines come from advance, once per frame, however many states there
// were in between.
func (v *viewer) update(t *transcript.Transcript) {
	v.items = v.items[:0]
	for _, i := range itemsOf(t, v.finished) {
		printed, isPrinted := v.printed[i.key]
		switch {
		case i.kind == finalItem:
		case !isPrinted && i.source == "":
			continue // nothing to show yet
		case !isPrinted:
		case i.kind == textItem && strings.HasPrefix(i.source, printed):
			if i.isSettled && i.source == printed {
				continue
			}
		case i.source == printed:
			continue
		case i.source == "":
			v.note("(retracted)")
			v.printed[i.key] = ""
			continue
		default:
			// What was printed can't be changed, so the item is printed again.
			v.replacements[i.key] = true
			delete(v.printed, i.key)
		}
		v.items = append(v.items, i)
	}
}

// reset takes a snapshot that replaced the transcript. It notes that messages were removed, and prints a message again that was edited.
// Messages before the first one of the snapshot are outside of its window and don't count.
func (v *viewer) reset(t *transcript.Transcript) {
	order := slices.Clone(v.order)
	if len(t.Messages) > 0 {
		order = order[max(slices.Index(order, t.Messages[0].ID), 0):]
		if t.Earlier && !slices.Contains(v.order, t.Messages[0].ID) {
			order = nil
		}
	}
	isMissing := func(id string) bool { return t.Message(id) == nil && t.Turn(id) == nil }
	if slices.ContainsFunc(order, isMissing) {
		v.note("(later messages were removed)")
		v.order = slices.DeleteFunc(v.order, func(id string) bool { return slices.Contains(order, id) && isMissing(id) })
	}
	for _, m := range t.Messages {
		if printed, ok := v.printed[m.ID+"/"]; ok && printed != Clean(m.Visible()) {
			delete(v.finished, m.ID)
		}
	}
}

// note prints a line of the program itself, such as a result of a command.
func (v *viewer) note(text string) { v.notes = append(v.notes, cellsOf(text, dim)) }

// advance returns the lines to print, and those to draw, of which there are at most room. It prints what can't change any more. What is
// complete but might still be replaced is printed when it doesn't fit any more, since most replacements follow soon.
// If room is 0 or negative, as on a terminal with few rows, nothing is drawn, and what is complete is printed. If the
// lines that aren't complete don't fit either, only the last ones are drawn, behind an ellipsis.
//
// What it returns counts as printed, so the caller must write it.
func (v *viewer) advance(width, room int) (printed, area []line) {
	for _, n := range v.notes {
		var lines []line
		for _, part := range wrap(n, width, false) {
			lines = append(lines, part)
		}
		printed = append(printed, v.gap(v.last, ownItem, lines)...)
		v.last = ownItem
	}
	v.notes = nil
	for len(v.items) > 0 && v.items[0].isSettled {
		printed = append(printed, v.print(width, true)...)
	}
	for v.isAsked && len(v.items) > 0 && (v.items[0].isComplete || v.items[0].kind == textItem) {
		printed = append(printed, v.print(width, true)...)
	}
	room = max(room, 0)
	for area = v.area(width); len(area) > room; area = v.area(width) {
		lines := v.print(width, false)
		if lines == nil {
			break
		}
		printed = append(printed, lines...)
	}
	if len(area) <= room {
		return printed, area
	}
	if room == 0 {
		return printed, nil
	}
	area = append([]line{cellsOf("…", dim)}, area[len(area)-room+1:]...)
	return printed, area
}

// print prints the first item, or the complete blocks of it unless isWhole is true. It returns nil if nothing is
// complete. An empty result that isn't nil means that the item had no lines, and that the next one is first now.
func (v *viewer) print(width int, isWhole bool) []line {
	i := v.items[0]
	from := len(v.printed[i.key])
	to := len(i.source)
	switch {
	case i.kind == finalItem:
		if !i.isSettled {
			return nil
		}
		v.finished[i.key] = true
		v.order = append(v.order, i.key)
	case isWhole || i.isComplete:
	case i.kind == textItem:
		if to = v.document(i).Stable(); to <= from {
			return nil
		}
	default:
		return nil
	}
	isEnd := to == len(i.source)
	lines := []line{}
	if i.kind != finalItem {
		lines = append(lines, v.gap(v.last, i.kind, v.draw(i, from, to, width, !isWhole))...)
		if len(lines) > 0 {
			v.last = i.kind
		}
		v.printed[i.key] = i.source[:to]
		delete(v.replacements, i.key)
	}
	if isEnd {
		delete(v.docs, i.key)
		v.items = v.items[1:]
	}
	return lines
}

// area returns the lines of all items that aren't printed.
func (v *viewer) area(width int) []line {
	var lines []line
	last := v.last
	for _, i := range v.items {
		if i.kind == finalItem {
			continue
		}
		block := v.gap(last, i.kind, v.draw(i, len(v.printed[i.key]), len(i.source), width, true))
		if len(block) > 0 {
			last = i.kind
		}
		lines = append(lines, block...)
	}
	return lines
}

// gap puts an empty line above an item, unless rows follow each other.
func (v *viewer) gap(last, kind itemKind, lines []line) []line {
	if len(lines) == 0 || last == noItem || last == kind && (kind == rowItem || kind == ownItem) {
		return lines
	}
	return append([]line{{}}, lines...)
}

// draw returns the lines of an item, of its text from from to to. mayGrow is false if the text is printed as it is
// now. Positions are bytes of the source.
func (v *viewer) draw(i item, from, to, width int, mayGrow bool) []line {
	var lines []line
	if v.replacements[i.key] {
		lines = append(lines, cellsOf("(replaced by)", dim))
	}
	if i.kind != textItem {
		return append(lines, i.draw(width)...)
	}
	if !mayGrow {
		return append(lines, markdown(markup.Parse(i.source), from, to, width)...)
	}
	doc := v.document(i)
	return append(lines, markdown(doc, from, min(to, doc.Len()), width)...)
}

// document parses the text of an item. While the text grows, open markers are closed, and characters whose meaning
// isn't clear yet are left out. Only the blocks that have changed since the last call are parsed again.
func (v *viewer) document(i item) *markup.Document {
	source := i.source
	if !i.isComplete {
		source = markup.Heal(source)
	}
	if doc := v.docs[i.key]; doc != nil {
		v.docs[i.key] = doc.Grow(source)
	} else {
		v.docs[i.key] = markup.Parse(source)
	}
	return v.docs[i.key]
}
