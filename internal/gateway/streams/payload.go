// What one append adds, and its form in an event of the log.

package streams

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
)

// The kinds of records. Their data is a JSON array of the values, a JSON string of the text, or one of the bytes in
// base64.
const (
	recordJSON  = "stream.json"
	recordText  = "stream.text"
	recordBytes = "stream.bytes"
)

// typeJSON is the content type whose streams consist of values instead of bytes.
const typeJSON = "application/json"

// mediaType returns a content type without its parameters, in small letters.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// values returns the JSON values of a body: the elements of an array, one level deep, or the body itself.
func values(body []byte) ([]json.RawMessage, error) {
	// Invalid UTF-8 within a string would be replaced in the responses, so it is refused like other faults.
	if !json.Valid(body) || !utf8.Valid(body) {
		return nil, invalid("the body is not valid JSON, which a stream of %s consists of", typeJSON)
	}
	trimmed := bytes.TrimSpace(body)
	if trimmed[0] != '[' {
		return []json.RawMessage{trimmed}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(trimmed, &list); err != nil {
		return nil, invalid("the body is not a JSON array: %v", err)
	}
	return list, nil
}

// payload is the content of one append.
type payload struct {
	kind string
	data json.RawMessage
}

// newPayload returns the payload for a body. It returns nil for a body that appends nothing: one without bytes, or an
// array without elements.
func newPayload(contentType string, body []byte) (*payload, error) {
	switch {
	case len(body) == 0:
		return nil, nil
	case mediaType(contentType) == typeJSON:
		list, err := values(body)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return jsonPayload(list)
	}
	return bytesPayload(body), nil
}

// jsonPayload returns a payload of values. Only the space around their parts is removed: json.Marshal would also
// escape characters.
func jsonPayload(list []json.RawMessage) (*payload, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := json.Compact(&b, v); err != nil {
			return nil, invalid("the body is not valid JSON: %v", err)
		}
	}
	b.WriteByte(']')
	return &payload{recordJSON, b.Bytes()}, nil
}

// bytesPayload returns a payload of bytes. Text is stored as text, because base64 takes a third more.
func bytesPayload(body []byte) *payload {
	if utf8.Valid(body) {
		return &payload{recordText, event.AppendString(nil, string(body))}
	}
	data := make([]byte, 0, base64.StdEncoding.EncodedLen(len(body))+2)
	data = base64.StdEncoding.AppendEncode(append(data, '"'), body)
	return &payload{recordBytes, append(data, '"')}
}

// content returns what readers get of a record: the bytes, or the values without the brackets around them.
func content(e *event.Event) ([]byte, error) {
	b := e.Get()
	switch b.RecordKind {
	case recordJSON:
		if len(b.Data) < 2 {
			return nil, fmt.Errorf("streams: record %d has no values", e.Seq)
		}
		return b.Data[1 : len(b.Data)-1], nil
	case recordText:
		var text string
		if err := json.Unmarshal(b.Data, &text); err != nil {
			return nil, fmt.Errorf("streams: record %d: %w", e.Seq, err)
		}
		return []byte(text), nil
	case recordBytes:
		var data []byte // which encoding/json decodes from base64
		if err := json.Unmarshal(b.Data, &data); err != nil {
			return nil, fmt.Errorf("streams: record %d: %w", e.Seq, err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("streams: record %d has the unknown kind %q", e.Seq, b.RecordKind)
}

// prefix returns the first part of a record: n values, or n bytes. It returns nil if the record has fewer.
func prefix(e *event.Event, n int64) (*payload, error) {
	if e.Get().RecordKind == recordJSON {
		var list []json.RawMessage
		if err := json.Unmarshal(e.Body.Data, &list); err != nil {
			return nil, fmt.Errorf("streams: record %d: %w", e.Seq, err)
		}
		if n > int64(len(list)) {
			return nil, nil
		}
		return jsonPayload(list[:n])
	}
	data, err := content(e)
	if err != nil || n > int64(len(data)) {
		return nil, err
	}
	return bytesPayload(data[:n]), nil
}
