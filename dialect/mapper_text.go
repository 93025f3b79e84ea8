package dialect

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// text maps an append or a replace. A text above the size limit of an event becomes several events, of which only the first has the note. The
// offset of an append is the length of the text so far. After the end of its part only an empty replace is mapped, which retracts the text.
func (m *Mapper) text(p *mappedPart, e event.Event, op *event.Event) error {
	text := strings.ToValidUTF8(op.Text, "\ufffd")
	isEmpty := op.Type == event.PartAppend && text == "" && op.Note == "" && op.History == nil
	if isEmpty || p.isOver && (op.Type == event.PartAppend || text != "") {
		m.DroppedOps++
		return nil
	}
	f := slices.Index(transcript.Fields[:], op.Field)
	if f < 0 {
		return fmt.Errorf("%w: field %q is unknown", event.ErrInvalid, op.Field)
	}
	sum := p.sums[f]
	if op.Type == event.PartReplace {
		sum = event.Sum{}
	}
	e.Field, e.Note, e.Extend, e.History = op.Field, strings.ToValidUTF8(op.Note, "\ufffd"), op.Extend, op.History
	for {
		e.Text = text[:splitAt(text)]
		text = text[len(e.Text):]
		if e.Type == event.PartAppend {
			e.Offset = sum.Length
		}
		if err := m.add(e); err != nil {
			return err
		}
		sum.Length += int64(len(e.Text))
		sum.CRC = crc32.Update(sum.CRC, castagnoli, []byte(e.Text))
		p.sums[f] = sum
		if text == "" {
			return nil
		}
		e.Type, e.Note, e.Extend, e.History = event.PartAppend, "", false, nil
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// splitAt returns the length of the longest prefix of text that fits in one event and doesn't split a character.
func splitAt(text string) int {
	if len(text) <= event.MaxText {
		return len(text)
	}
	n := event.MaxText
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// endPart maps the end of a part and adds the lengths and checksums of its texts, so that readers can check their own. An upstream may send
// checksums too, as the dialect leat does; a wrong one is an error, because text was lost on the way to Leat.
func (m *Mapper) endPart(p *mappedPart, e event.Event, op *event.Event) error {
	if p.isOver {
		m.DroppedOps++
		return nil
	}
	b := *op.Get()
	sums := b.Sums
	b.Sums = nil
	for i, f := range transcript.Fields {
		sum := p.sums[i]
		if want, ok := sums[f.Name()]; ok && want != sum {
			return fmt.Errorf("%w: %s of part %q has %d bytes, checksum %d; its end says %d, %d", event.ErrInvalid, f.Name(), op.Part, sum.Length, sum.CRC, want.Length, want.CRC)
		}
		if sum.Length > 0 || f == event.Text && textual(p.kind) {
			if b.Sums == nil {
				b.Sums = map[string]event.Sum{}
			}
			b.Sums[f.Name()] = sum
		}
	}
	e.Body = &b
	if err := m.add(e); err != nil {
		return err
	}
	p.isOver = true
	return nil
}

// textual reports whether a part of that kind has a text, which may be empty.
func textual(kind event.PartKind) bool {
	return kind == event.KindText || kind == event.KindReasoning || kind == event.KindStatus
}
