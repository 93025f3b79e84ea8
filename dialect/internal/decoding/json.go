package decoding

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// Read decodes a frame that must be one JSON object, like [Unmarshal] but in the memory of the frame before. The result is valid until the
// next call; see [jsonscan.Reader.Read] for what may be kept of it.
func Read[T any](r jsonscan.Reader[T], last *T, data []byte) (*T, error) {
	in, err := r.Read(last, data)
	if err != nil {
		return nil, Fault("invalid JSON", err)
	}
	return in, checkObject(data)
}

// Unmarshal decodes a frame that must be one JSON object. encoding/json alone would also accept null for a struct, and a decoder would
// then take the frame for an object without fields.
func Unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return Fault("invalid JSON", err)
	}
	return checkObject(data)
}

// checkObject returns an error if data isn't a JSON object.
func checkObject(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return Fault("a frame must be a JSON object", nil)
	}
	return nil
}

// String decodes a JSON string. It returns "" for any other JSON value and for an absent one, because most upstreams don't promise the
// types of their optional fields, and a wrong one must not end the turn. An invalid character becomes U+FFFD.
func String(token json.RawMessage) string {
	var t dialect.Text
	s, err := t.JSON(token)
	if err != nil {
		return ""
	}
	return s + t.Close()
}

// Plain returns a JSON value as the text of a tool's input or output: a string decoded, null as "", and anything else as compact JSON.
func Plain(token json.RawMessage) string {
	switch {
	case string(token) == "null":
		return ""
	case bytes.HasPrefix(token, []byte(`"`)):
		return String(token)
	}
	return Compact(token)
}

// Compact returns a JSON value without the white space between its tokens. It returns "" if the value is absent or invalid.
func Compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}
