// The protocol's binary form: each event is a message of Protocol Buffers after its length.

package agui

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// binaryType is the media type of the binary form. Clients name it in Accept, and compare the response's with it as a whole.
const binaryType = "application/vnd.ag-ui.event+proto"

// layout says where an event is in the envelope, and which numbers its fields have. A field that an event doesn't have has the number 0.
type layout struct {
	event                                                           protowire.Number
	thread, run, messageID, role, delta, callID, callName, activity protowire.Number
	content, messages, outcome, interrupts, message, code           protowire.Number
}

// layouts are those of the protocol's events.proto, version 1.0.
//
// They are written out here and not generated, because only 17 of the protocol's 31 events are sent, and of these only some fields. The client itself
// decodes them in test/compat.
var layouts = map[string]layout{
	textStart:        {event: 1, messageID: 2, role: 3},
	textContent:      {event: 2, messageID: 2, delta: 3},
	textEnd:          {event: 3, messageID: 2},
	callStart:        {event: 4, callID: 2, callName: 3},
	callArgs:         {event: 5, callID: 2, delta: 3},
	callEnd:          {event: 6, callID: 2},
	messagesSnapshot: {event: 9, messages: 2},
	runStarted:       {event: 12, thread: 2, run: 3},
	runFinished:      {event: 13, thread: 2, run: 3, outcome: 5, interrupts: 6},
	runError:         {event: 14, code: 2, message: 3},
	callResult:       {event: 22, messageID: 3, callID: 4, content: 5, role: 6},
	activitySnapshot: {event: 23, messageID: 3, activity: 4, content: 5},
	reasoningStart:   {event: 25, messageID: 3},
	reasoningBegin:   {event: 26, messageID: 3, role: 4},
	reasoningContent: {event: 27, messageID: 3, delta: 4},
	reasoningFinish:  {event: 28, messageID: 3},
	reasoningEnd:     {event: 30, messageID: 3},
}

// appendBinary appends an event in the binary form.
func appendBinary(b []byte, f *frame) ([]byte, error) {
	l, ok := layouts[f.Type]
	if !ok {
		return b, fmt.Errorf("agui: %s has no binary form", f.Type)
	}
	// The base event repeats the type, whose number is one below that of the event in the envelope.
	body := appendBytes(nil, 1, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(l.event)-1))
	body = appendText(body, l.thread, f.Thread)
	body = appendText(body, l.run, f.Run)
	body = appendText(body, l.messageID, f.MessageID)
	body = appendText(body, l.role, f.Role)
	body = appendText(body, l.delta, f.Delta)
	body = appendText(body, l.callID, f.CallID)
	body = appendText(body, l.callName, f.CallName)
	body = appendText(body, l.activity, f.ActivityType)
	body = appendText(body, l.code, f.Code)
	body = appendText(body, l.message, f.Message)
	var err error
	if l.content != 0 {
		if body, err = appendContent(body, l.content, f.Content); err != nil {
			return b, err
		}
	}
	for i := range f.Messages {
		m, err := appendMessageFields(nil, &f.Messages[i])
		if err != nil {
			return b, err
		}
		body = appendBytes(body, l.messages, m)
	}
	if f.Outcome != nil {
		body = appendText(body, l.outcome, f.Outcome.Type)
		for i := range f.Outcome.Interrupts {
			fields, err := appendInterrupt(nil, &f.Outcome.Interrupts[i])
			if err != nil {
				return b, err
			}
			body = appendBytes(body, l.interrupts, fields)
		}
	}
	envelope := appendBytes(nil, l.event, body)
	b = binary.BigEndian.AppendUint32(b, uint32(len(envelope))) //nolint:gosec // a frame is limited by the largest message
	return append(b, envelope...), nil
}

// appendText appends a text, unless it is empty or the event doesn't have the field.
//
// Empty texts are defaults of the binary form, and clients read a default where a field is missing.
func appendText(b []byte, field protowire.Number, text string) []byte {
	if field == 0 || text == "" {
		return b
	}
	return appendBytes(b, field, []byte(text))
}

// appendBytes appends a text or a message.
func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// appendContent appends the content of an event: a text of a result, an object of an activity.
func appendContent(b []byte, field protowire.Number, content json.RawMessage) ([]byte, error) {
	var text string
	if err := json.Unmarshal(content, &text); err == nil {
		return appendBytes(b, field, []byte(text)), nil
	}
	return appendJSON(b, field, content, &structpb.Struct{})
}

// appendJSON appends a JSON value in the form of a message for such values.
func appendJSON(b []byte, field protowire.Number, v json.RawMessage, into interface {
	proto.Message
	json.Unmarshaler
},
) ([]byte, error) {
	if err := into.UnmarshalJSON(v); err != nil {
		return b, fmt.Errorf("agui: binary form of a JSON value: %w", err)
	}
	encoded, err := proto.Marshal(into)
	if err != nil {
		return b, fmt.Errorf("agui: binary form of a JSON value: %w", err)
	}
	return appendBytes(b, field, encoded), nil
}

// appendMessageFields appends the fields of a message in a snapshot.
func appendMessageFields(b []byte, m *message) ([]byte, error) {
	b = appendText(b, 1, m.ID)
	b = appendText(b, 2, m.Role)
	b = appendText(b, 4, m.Name)
	for _, c := range m.ToolCalls {
		function := appendText(appendText(nil, 1, c.Function.Name), 2, c.Function.Arguments)
		b = appendBytes(b, 5, appendBytes(appendText(appendText(nil, 1, c.ID), 2, c.Type), 3, function))
	}
	b = appendText(b, 6, m.CallID)
	b = appendText(b, 7, m.Error)
	b = appendText(b, 12, m.ActivityType)
	var text string
	switch {
	case len(m.Content) == 0 || string(m.Content) == "null":
		return b, nil
	case m.Role == roleActivity:
		return appendJSON(b, 13, m.Content, &structpb.Struct{})
	case json.Unmarshal(m.Content, &text) == nil:
		return appendBytes(b, 3, []byte(text)), nil
	}
	return appendParts(b, m.Content)
}

// partFields are the numbers of the kinds of parts, and sourceFields those of the kinds of sources.
var (
	partFields   = map[string]protowire.Number{"image": 2, "audio": 3, "video": 4, "document": 5}
	sourceFields = map[string]protowire.Number{"data": 1, "url": 2}
)

// appendParts appends the parts of a message's content.
func appendParts(b []byte, content json.RawMessage) ([]byte, error) {
	var parts []contentPart
	if err := json.Unmarshal(content, &parts); err != nil {
		return b, fmt.Errorf("agui: binary form of a message: %w", err)
	}
	for _, p := range parts {
		if p.Type == "text" {
			b = appendBytes(b, 8, appendBytes(nil, 1, appendBytes(nil, 1, []byte(p.Text))))
			continue
		}
		if partFields[p.Type] == 0 || sourceFields[p.Source.Type] == 0 {
			continue // only JSON can have it; the client keeps no other copy of such a part
		}
		source := appendText(appendText(nil, 1, p.Source.Value), 2, p.Source.MIMEType)
		part := appendBytes(nil, 1, appendBytes(nil, sourceFields[p.Source.Type], source))
		b = appendBytes(b, 8, appendBytes(nil, partFields[p.Type], part))
	}
	return b, nil
}

// appendInterrupt appends the fields of an interrupt.
func appendInterrupt(b []byte, i *interrupt) (_ []byte, err error) {
	b = appendText(b, 1, i.ID)
	b = appendText(b, 2, i.Reason)
	b = appendText(b, 3, i.Message)
	b = appendText(b, 4, i.CallID)
	if len(i.Schema) > 0 {
		if b, err = appendJSON(b, 5, i.Schema, &structpb.Value{}); err != nil {
			return b, err
		}
	}
	if len(i.Metadata) > 0 {
		b, err = appendJSON(b, 7, i.Metadata, &structpb.Value{})
	}
	return b, err
}
