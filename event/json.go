package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// wire is an event as encoding/json decodes it. The embedded Body is allocated only if the JSON has one of its keys.
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

// AppendJSON appends the event's JSON to b. It doesn't use encoding/json except for a body, because every event of a log passes
// through it. Text that is not valid UTF-8 is written with replacement characters.
func (e *Event) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, '{')
	b = appendInt(b, `"seq":`, e.Seq)
	b = appendInt(b, `"first":`, e.MergedFrom)
	b = appendInt(b, `"at":`, e.At)
	if e.Turn != "" {
		b = append(AppendString(append(b, `"turn":`...), e.Turn), ',')
	}
	b = AppendString(append(b, `"type":`...), string(e.Type))
	b = appendField(b, `,"message":`, e.Message)
	b = appendField(b, `,"part":`, e.Part)
	b = appendField(b, `,"field":`, string(e.Field))
	if e.Type == PartAppend {
		b = strconv.AppendInt(append(b, `,"offset":`...), e.Offset, 10)
	}
	if e.Op() {
		b = AppendString(append(b, `,"text":`...), e.Text)
	}
	b = appendField(b, `,"note":`, e.Note)
	if e.Note != "" && e.Extend {
		b = append(b, `,"extend":true`...)
	}
	if e.History != nil {
		b = append(b, `,"history":[`...)
		for i, n := range e.History {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendString(b, n)
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
		// The keys of the body are in the object of the event itself, so its braces are dropped.
		if s := bytes.TrimSpace(buf.Bytes()); len(s) > 2 {
			b = append(append(b, ','), s[1:len(s)-1]...)
		}
	}
	return append(b, '}'), nil
}

// appendInt appends a key, a number and a comma, or nothing if n is 0.
func appendInt(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return append(strconv.AppendInt(append(b, key...), n, 10), ',')
}

// appendField appends a key and a string, or nothing if s is empty.
func appendField(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return AppendString(append(b, key...), s)
}

// decodeKeys moves the values of the keys "state" and "kind" to the fields for which an event of type t uses them. Two types share
// each key on the wire; the struct has a separate field for each, because their values are of different Go types.
func (b *Body) decodeKeys(t Type) {
	switch t {
	case MessageUpdate:
		b.MessageState, b.State = MessageState(b.State), ""
	case Record:
		b.RecordKind, b.Kind = string(b.Kind), ""
	}
}

// encodeKeys returns the body with the values under the keys of the wire, the inverse of decodeKeys. It changes a copy, because a body may be
// shared between events.
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

// AppendString appends s as a JSON string, in the form in which events are written. Apart from the characters that JSON requires to
// be escaped, it escapes U+007F, and U+2028 and U+2029, which older JavaScript engines take for line ends. Each invalid byte
// becomes U+FFFD.
//
// It copies runs of plain characters at once: text is most of what a gateway writes.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			i += 1 + plainLen(s[i+1:])
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

// plainLen returns the number of leading bytes of s that AppendString copies as they are, but may leave out up to seven at the end of s. It
// looks at eight bytes at once, because nearly all text passes here.
func plainLen(s string) (n int) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(s)-n >= 8; n += 8 {
		w := s[n : n+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		// The sums have the high bit of a byte if the byte is not below 0x20, not a quote, not a backslash, and below 0x7f. Only bytes with a
		// high bit carry into later ones, so the first byte that is not plain is found exactly.
		if special := ^((x + 0x60*ones) & (x ^ '"'*ones + 0x7f*ones) & (x ^ '\\'*ones + 0x7f*ones) &^ (x + ones) &^ x) & high; special != 0 {
			return n + bits.TrailingZeros64(special)/8
		}
	}
	return n
}
