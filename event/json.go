package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// wire is Event as encoding/json reads it; the embedded body is made only if one of its keys is there.
type wire struct {
	Seq        int64    `json:"seq"`
	MergedFrom int64    `json:"first"`
	At         int64    `json:"at"`
	Type       Type     `json:"type"`
	Turn       string   `json:"turn"`
	Message    string   `json:"message"`
	Part       string   `json:"part"`
	Field      Field    `json:"field"`
	Offset     int64    `json:"offset"`
	Text       string   `json:"text"`
	Note       string   `json:"note"`
	Extend     bool     `json:"extend"`
	History    []string `json:"history"`
	Partial    bool     `json:"more"`
	*Body
}

// UnmarshalJSON reads an event. Unknown keys are ignored, so that a newer writer does not break an older reader.
func (e *Event) UnmarshalJSON(b []byte) error {
	if e.scan(b) {
		return nil
	}
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	if w.Field == "text" {
		w.Field = Text
	}
	if w.Body != nil {
		w.Body.decodeKeys(w.Type)
	}
	*e = Event{
		Seq: w.Seq, MergedFrom: w.MergedFrom, At: w.At, Type: w.Type, Turn: w.Turn, Message: w.Message, Part: w.Part,
		Field: w.Field, Offset: w.Offset, Text: w.Text, Note: w.Note, Extend: w.Extend, History: w.History, Partial: w.Partial, Body: w.Body,
	}
	return nil
}

// MarshalJSON writes an event as AppendJSON does.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// AppendJSON appends the event's JSON to b. It writes by hand, since every event that a log takes goes through here;
// only a body goes through encoding/json. Text that is not valid UTF-8 is written with replacement characters.
func (e *Event) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, '{')
	if e.Seq != 0 {
		b = strconv.AppendInt(append(b, `"seq":`...), e.Seq, 10)
		b = append(b, ',')
	}
	if e.MergedFrom != 0 {
		b = strconv.AppendInt(append(b, `"first":`...), e.MergedFrom, 10)
		b = append(b, ',')
	}
	if e.At != 0 {
		b = strconv.AppendInt(append(b, `"at":`...), e.At, 10)
		b = append(b, ',')
	}
	if e.Turn != "" {
		b = appendString(append(b, `"turn":`...), e.Turn)
		b = append(b, ',')
	}
	b = appendString(append(b, `"type":`...), string(e.Type))
	if e.Message != "" {
		b = appendString(append(b, `,"message":`...), e.Message)
	}
	if e.Part != "" {
		b = appendString(append(b, `,"part":`...), e.Part)
	}
	if e.Field != Text {
		b = appendString(append(b, `,"field":`...), string(e.Field))
	}
	if e.Type == PartAppend {
		b = strconv.AppendInt(append(b, `,"offset":`...), e.Offset, 10)
	}
	if e.Op() {
		b = appendString(append(b, `,"text":`...), e.Text)
	}
	if e.Note != "" {
		b = appendString(append(b, `,"note":`...), e.Note)
		if e.Extend {
			b = append(b, `,"extend":true`...)
		}
	}
	if e.History != nil {
		b = append(b, `,"history":[`...)
		for i, n := range e.History {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, n)
		}
		b = append(b, ']')
	}
	if e.Partial {
		b = append(b, `,"more":true`...)
	}
	if e.Body != nil {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e.Body.encodeKeys(e.Type)); err != nil {
			return nil, fmt.Errorf("event: encode %s: %w", e.Type, err)
		}
		if s := bytes.TrimSpace(buf.Bytes()); len(s) > 2 {
			b = append(append(b, ','), s[1:len(s)-1]...)
		}
	}
	return append(b, '}'), nil
}

// decodeKeys moves the values of "state" and "kind" to the fields that they mean in an event of type t.
func (b *Body) decodeKeys(t Type) {
	switch t {
	case MessageUpdate:
		b.MessageState, b.State = MessageState(b.State), ""
	case Record:
		b.RecordKind, b.Kind = string(b.Kind), ""
	}
}

// encodeKeys undoes decodeKeys on a copy, since a body may be shared between events.
func (b *Body) encodeKeys(t Type) *Body {
	c := *b
	switch t {
	case MessageUpdate:
		c.State = PartState(b.MessageState)
	case Record:
		c.Kind = PartKind(b.RecordKind)
	default:
		return b
	}
	return &c
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. It escapes what JSON demands and U+2028 and U+2029, which old JavaScript takes for line ends.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				b = append(append(b, s[start:i]...), `\ufffd`...)
			case r == 0x2028 || r == 0x2029:
				b = append(append(b, s[start:i]...), `\u202`...)
				b = append(b, hexDigits[r&0xf])
			default:
				i += n
				continue
			}
			i += n
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// AppendString appends s to b as a JSON string, as events are written.
func AppendString(b []byte, s string) []byte { return appendString(b, s) }
