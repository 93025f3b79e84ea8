package console

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/transcript"
)

// viewer knows what of a conversation has been printed and what is still drawn below it.
type viewer struct {
	items   []item
	printed map[string]string // by the key of an item: its printed source
	// replaced are the keys of items whose printed text was replaced, until the new text is printed.
	replaced map[string]bool
	done     map[string]bool // messages and turns that are printed completely
	shown    []string        // the keys in done, in their order
	docs     map[string]*markup.Document
	last     itemKind // of the item that was printed last
	notes    []line   // lines of the program itself, to be printed next
	// isAsked is true while a question is open. Then what is complete is printed, so that the answer is recorded below it.
	isAsked bool
}

func newViewer() viewer {
	return viewer{printed: map[string]string{}, replaced: map[string]bool{}, done: map[string]bool{}, docs: map[string]*markup.Document{}}
}

// update takes the current state of the conversation. Items that are printed already are dropped, and what was printed wrongly is noted.
func (v *viewer) update(t *transcript.Transcript) {
	v.items = v.items[:0]
	for _, i := range itemsOf(t, v.done) {
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
			v.replaced[i.key] = true
			delete(v.printed, i.key)
		}
		v.items = append(v.items, i)
	}
}

// reset takes a snapshot that replaced the transcript. It notes that messages were removed, and prints a message again that was edited.
// Messages before the first one of the snapshot are outside of its window and don't count.
func (v *viewer) reset(t *transcript.Transcript) {
	shown := slices.Clone(v.shown)
	if len(t.Messages) > 0 {
		shown = shown[max(slices.Index(shown, t.Messages[0].ID), 0):]
		if t.Earlier && !slices.Contains(v.shown, t.Messages[0].ID) {
			shown = nil
		}
	}
	isMissing := func(id string) bool { return t.Message(id) == nil && t.Turn(id) == nil }
	if slices.ContainsFunc(shown, isMissing) {
		v.note("(later messages were removed)")
		v.shown = slices.DeleteFunc(v.shown, func(id string) bool { return slices.Contains(shown, id) && isMissing(id) })
	}
	for _, m := range t.Messages {
		if printed, ok := v.printed[m.ID+"/"]; ok && printed != Clean(m.Visible()) {
			delete(v.done, m.ID)
		}
	}
}

// note prints a line of the program itself, such as a result of a command.
func (v *viewer) note(text string) { v.notes = append(v.notes, cellsOf(text, dim)) }

// advance returns the lines to print, and those to draw, of which there are at most room. It prints what can't change any more. What is
// complete but might still be replaced is printed when there is no room for it, since most replacements follow soon.
func (v *viewer) advance(width, room int) (printed, live []line) {
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
	for live = v.live(width); len(live) > room; live = v.live(width) {
		more := v.print(width, false)
		if more == nil {
			break
		}
		printed = append(printed, more...)
	}
	if len(live) <= room {
		return printed, live
	}
	if room <= 0 {
		return printed, nil
	}
	live = append([]line{cellsOf("…", dim)}, live[len(live)-room+1:]...)
	return printed, live
}

// print prints the first item, or the complete blocks of it unless all is true. It returns nil if nothing is complete.
func (v *viewer) print(width int, all bool) []line {
	i := v.items[0]
	from := len(v.printed[i.key])
	to := len(i.source)
	switch {
	case i.kind == finalItem:
		if !i.isSettled {
			return nil
		}
		v.done[i.key] = true
		v.shown = append(v.shown, i.key)
	case all || i.isComplete:
	case i.kind == textItem:
		if to = v.document(i).Stable(); to <= from {
			return nil
		}
	default:
		return nil
	}
	isWhole := to == len(i.source)
	lines := []line{}
	if i.kind != finalItem {
		lines = append(lines, v.gap(v.last, i.kind, v.draw(i, from, to, width, !all))...)
		if len(lines) > 0 {
			v.last = i.kind
		}
		v.printed[i.key] = i.source[:to]
		delete(v.replaced, i.key)
	}
	if isWhole {
		delete(v.docs, i.key)
		v.items = v.items[1:]
	}
	return lines
}

// live returns the lines of all items that aren't printed.
func (v *viewer) live(width int) []line {
	var lines []line
	last := v.last
	for _, i := range v.items {
		if i.kind == finalItem {
			continue
		}
		more := v.gap(last, i.kind, v.draw(i, len(v.printed[i.key]), len(i.source), width, true))
		if len(more) > 0 {
			last = i.kind
		}
		lines = append(lines, more...)
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

// draw returns the lines of an item, of its text from from to to. mayGrow is false if the text is printed as it is now.
func (v *viewer) draw(i item, from, to, width int, mayGrow bool) []line {
	var lines []line
	if v.replaced[i.key] {
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

// document parses a text. While the text grows, open markers are closed, and characters whose meaning isn't clear yet are left out.
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
