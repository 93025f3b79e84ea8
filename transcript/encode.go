package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/event"
)

// AppendJSON appends the snapshot as JSON: {"seq", "title", "metadata", "messages", "turns"}. It doesn't use encoding/json for
// texts, because a window may have megabytes of them. It fails only if Data or Metadata isn't JSON.
func (s *Snapshot) AppendJSON(b []byte) ([]byte, error) {
	w := writer{b: slices.Grow(b, s.size())}
	w.open('{')
	w.int("seq", s.Seq)
	w.str("title", s.Title)
	if len(s.Metadata) > 0 {
		w.encode("metadata", s.Metadata)
	}
	w.list("messages", len(s.Messages), func(i int) { w.message(s.Messages[i]) })
	w.list("turns", len(s.Turns), func(i int) { w.value(s.Turns[i]) })
	w.close('}')
	return w.result("encode")
}

// MarshalJSON is AppendJSON for encoding/json.
func (s *Snapshot) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil) }

// AppendJSON appends the message with all its parts as JSON, in the form in which a snapshot has it.
func (m *Message) AppendJSON(b []byte) ([]byte, error) {
	w := writer{b: b}
	w.message(m)
	return w.result("encode message")
}

// MarshalJSON is AppendJSON for encoding/json.
func (m *Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// MarshalJSON encodes the part, with its texts under the names of their fields.
func (p *Part) MarshalJSON() ([]byte, error) {
	var w writer
	w.part(p)
	return w.result("encode part")
}

// size estimates the length of the JSON, with 3 % more for escapes in texts, so that the buffer seldom has to grow and be copied.
func (s *Snapshot) size() int {
	n := 512 + 512*len(s.Turns)
	for _, turn := range s.Turns {
		for i := range turn.Answered {
			n += 200 + len(turn.Answered[i].Prompt) + len(turn.Answered[i].Text)
		}
	}
	for _, m := range s.Messages {
		n += m.Size() + m.Size()/32 + 300*len(m.Parts)
	}
	return n
}

// writer appends JSON. Its methods with a key append nothing for an empty value, and a comma after any other, which close removes after the
// last one.
type writer struct {
	b   []byte
	err error // of the last value that could not be encoded
}

// open begins an object or list.
func (w *writer) open(c byte) { w.b = append(w.b, c) }

// close removes the comma after the last entry and ends an object or list.
func (w *writer) close(c byte) {
	if w.b[len(w.b)-1] == ',' {
		w.b = w.b[:len(w.b)-1]
	}
	w.b = append(w.b, c)
}

// key appends a key without escapes: all keys are plain names.
func (w *writer) key(k string) { w.b = append(append(append(w.b, '"'), k...), '"', ':') }

func (w *writer) str(k, v string) {
	if v != "" {
		w.key(k)
		w.b = append(event.AppendString(w.b, v), ',')
	}
}

func (w *writer) int(k string, v int64) {
	if v != 0 {
		w.key(k)
		w.b = append(strconv.AppendInt(w.b, v, 10), ',')
	}
}

// result returns what was written, or an error that names the operation.
func (w *writer) result(operation string) ([]byte, error) {
	if w.err != nil {
		return nil, fmt.Errorf("transcript: %s: %w", operation, w.err)
	}
	return w.b, nil
}

func (w *writer) bool(k string, v bool) {
	if v {
		w.key(k)
		w.b = append(w.b, "true,"...)
	}
}

// encode appends a key and a value of any type, by encoding/json.
func (w *writer) encode(k string, v any) {
	w.key(k)
	w.value(v)
	w.b = append(w.b, ',')
}

// value appends a value by encoding/json, without the escapes for HTML, which every reader would have to undo.
func (w *writer) value(v any) {
	// The encoder appends to the buffer of the writer, which saves a copy. It ends a value with a line end.
	buf := bytes.NewBuffer(w.b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.err = err
		return
	}
	w.b = bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// list appends a list of n items, also if it is empty: clients in JavaScript iterate over it without a check.
func (w *writer) list(k string, n int, item func(int)) {
	w.key(k)
	w.open('[')
	for i := range n {
		item(i)
		w.b = append(w.b, ',')
	}
	w.close(']')
	w.b = append(w.b, ',')
}

// message appends a message in the order of its fields. The keys are those of the struct tags of [Message].
func (w *writer) message(m *Message) {
	w.open('{')
	w.str("id", m.ID)
	w.str("turn", m.Turn)
	w.str("role", string(m.Role))
	if m.Author != nil {
		w.encode("author", m.Author)
	}
	w.str("source", m.Source)
	w.int("at", m.At)
	w.int("endAt", m.EndAt)
	w.str("state", string(m.State))
	w.str("stateTurn", m.StateTurn)
	w.str("stateReason", m.StateReason)
	w.bool("ended", m.Final)
	w.str("stopReason", m.StopReason)
	w.list("parts", len(m.Parts), func(i int) { w.part(m.Parts[i]) })
	w.close('}')
}

// part appends a part in the order of its fields, then its texts and its history.
func (w *writer) part(p *Part) {
	w.open('{')
	w.str("id", p.ID)
	w.str("kind", string(p.Kind))
	w.str("name", p.Name)
	w.str("call", p.Call)
	w.str("mediaType", p.MediaType)
	w.str("join", p.Join)
	w.str("state", string(p.State))
	w.str("title", p.Title)
	if p.Media != nil {
		w.encode("media", p.Media)
	}
	if p.Error != nil {
		w.encode("error", p.Error)
	}
	if len(p.Data) > 0 {
		w.encode("data", p.Data)
	}
	w.int("at", p.At)
	w.int("endAt", p.EndAt)
	w.bool("ended", p.Final)
	for i, f := range Fields {
		w.str(f.Name(), p.texts[i].s)
	}
	if h := p.History(); len(h) > 0 {
		w.list("history", len(h), func(i int) { w.b = event.AppendString(w.b, h[i]) })
	}
	w.close('}')
}
