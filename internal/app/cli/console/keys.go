package console

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// key is a key with a name, or text that was typed or pasted.
type key struct {
	Name string // empty for text
	// Text is valid UTF-8. Text that was typed quickly comes as one key.
	Text string
	// IsPaste is true for text that the terminal has marked as pasted. A line feed in it does not send the message.
	IsPaste bool
}

// The sequences that terminals send for keys (xterm, "PC-Style Function Keys"; the kitty keyboard protocol for Enter
// with modifiers). Names are those that [model.press] and [editor.edit] know. A sequence that isn't listed is ignored
// as a whole, so that it never becomes text.
var sequences = map[string]string{
	"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
	"\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
	"\x1b[H": "home", "\x1b[F": "end", "\x1bOH": "home", "\x1bOF": "end", "\x1b[1~": "home", "\x1b[4~": "end", "\x1b[7~": "home", "\x1b[8~": "end",
	"\x1b[3~":   "delete",
	"\x1b[1;5C": "word-right", "\x1b[1;5D": "word-left", "\x1b[1;3C": "word-right", "\x1b[1;3D": "word-left", "\x1bf": "word-right", "\x1bb": "word-left",
	"\x1b\r": "newline", "\x1b\n": "newline", "\x1b[13;2u": "newline", "\x1b[13;3u": "newline", "\x1b[27;2;13~": "newline",
	"\x1b\x7f": "delete-word",
}

// controls are the control characters that are keys. A terminal in raw mode sends Enter as a carriage return, so the line feed is Ctrl+J.
var controls = map[byte]string{
	'\r': "enter", '\n': "newline", 0x7f: "backspace", '\b': "backspace", 0x01: "home", 0x02: "left", 0x03: "interrupt", 0x04: "eof",
	0x05: "end", 0x06: "right", 0x0b: "delete-end", 0x0c: "redraw", 0x0e: "down", 0x10: "up", 0x15: "delete-start", 0x17: "delete-word",
}

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	// maxPaste is the limit of a paste, in bytes. The gateway's limit for a message is lower.
	maxPaste = 8 << 20
)

// decoder turns the bytes of a terminal into keys. It has no clock: the caller calls flush when isWaiting stays true
// for escapeTime.
type decoder struct {
	// pending has the bytes that aren't decoded: an incomplete sequence or character, or a paste so far. isPasted
	// means that the start of a paste was read, but not its end.
	pending  []byte
	isPasted bool
}

// isWaiting reports whether an incomplete sequence is buffered, which may be the key Escape alone.
func (d *decoder) isWaiting() bool { return len(d.pending) > 0 && !d.isPasted }

// decode returns the keys in p. Incomplete characters and sequences stay buffered. It copies p. Adjacent characters
// become one key, since the model would otherwise divide the text again for each of them.
func (d *decoder) decode(p []byte) []key {
	d.pending = append(d.pending, p...)
	var keys []key
	for len(d.pending) > 0 {
		key, n := d.next()
		if n == 0 {
			break
		}
		d.pending = d.pending[n:]
		if key.Name == "" && key.Text == "" {
			continue
		}
		if last := len(keys) - 1; last >= 0 && key.Name == "" && keys[last].Name == "" && !key.IsPaste && !keys[last].IsPaste {
			keys[last].Text += key.Text
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

// flush returns the keys of an incomplete sequence, after a moment in which nothing followed: Escape, and what came
// behind it. In a paste nothing is flushed, however long it takes: its end is certain to come.
func (d *decoder) flush() []key {
	if !d.isWaiting() {
		return nil
	}
	incomplete := d.pending
	d.pending = nil
	if incomplete[0] != 0x1b {
		return nil // half a character
	}
	return []key{{Name: "escape"}}
}

// next returns the first key and its length, or 0 if it is incomplete. Unknown sequences are a key without a name. A
// paste that exceeds maxPaste ends there, and the remainder arrives as if it were typed.
func (d *decoder) next() (key, int) {
	b := d.pending
	if d.isPasted {
		end := bytes.Index(b, []byte(pasteEnd))
		if end < 0 && len(b) < maxPaste {
			return key{}, 0
		}
		if end < 0 {
			d.isPasted = false
			return pasted(b), len(b)
		}
		d.isPasted = false
		return pasted(b[:end]), end + len(pasteEnd)
	}
	switch {
	case b[0] == 0x1b:
		return d.sequence()
	case b[0] < ' ' || b[0] == 0x7f:
		if b[0] == '\t' {
			return key{Name: "tab"}, 1
		}
		return key{Name: controls[b[0]]}, 1
	case !utf8.FullRune(b):
		return key{}, 0
	}
	_, n := utf8.DecodeRune(b)
	return key{Text: string(b[:n])}, n
}

// pasted returns a paste as text. Terminals send line ends as carriage returns.
func pasted(b []byte) key {
	text := strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\r", "\n")
	return key{Text: strings.ToValidUTF8(text, "\uFFFD"), IsPaste: true}
}

// sequence decodes an escape sequence at the beginning of the buffer.
func (d *decoder) sequence() (key, int) {
	b := d.pending
	if len(b) == 1 {
		return key{}, 0
	}
	n := 2
	switch b[1] {
	case 0x1b:
		return key{Name: "escape"}, 1
	case '[':
		for n < len(b) && (b[n] < 0x40 || b[n] > 0x7e) {
			n++
		}
		if n == len(b) {
			return key{}, 0
		}
		n++
	case 'O':
		if len(b) < 3 {
			return key{}, 0
		}
		n = 3
	}
	if string(b[:n]) == pasteStart {
		d.isPasted = true
		return key{}, n
	}
	return key{Name: sequences[string(b[:n])]}, n
}
