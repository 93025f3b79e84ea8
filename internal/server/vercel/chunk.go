// The chunks of the SDK's streams, as server-sent events.

package vercel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/internal/server"
)

// sdk is the major version of the client's package ai. It decides which chunks the client knows.
type sdk int

const (
	sdk5 sdk = 5 // the default
	sdk6 sdk = 6 // also approvals and refused tools
	sdk7 sdk = 7 // also steps that are reset
)

// chunk is one chunk of a stream. Type determines which fields are used.
//
// Fields that a chunk doesn't have must be missing: an empty text is not the same as none in the SDK. The fields that a chunk needs are never
// empty here, because a delta is sent only if there is text, and an input or output is at least an empty JSON value.
type chunk struct {
	Type      string `json:"type"`
	MessageID string `json:"messageId,omitempty"`
	ID        string `json:"id,omitempty"`
	Delta     string `json:"delta,omitempty"`
	// Calls of tools. Dynamic says that the page doesn't know the type of the input, ProviderExecuted that the page must not run the tool. A
	// preliminary output is replaced by the next one.
	ToolCallID       string          `json:"toolCallId,omitempty"`
	ToolName         string          `json:"toolName,omitempty"`
	Title            string          `json:"title,omitempty"`
	Dynamic          bool            `json:"dynamic,omitempty"`
	ProviderExecuted bool            `json:"providerExecuted,omitempty"`
	InputTextDelta   string          `json:"inputTextDelta,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	Output           json.RawMessage `json:"output,omitempty"`
	Preliminary      bool            `json:"preliminary,omitempty"`
	ErrorText        string          `json:"errorText,omitempty"`
	ApprovalID       string          `json:"approvalId,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	// Data parts and files. FinishReason must be a word that the client's version knows.
	Data         json.RawMessage `json:"data,omitempty"`
	URL          string          `json:"url,omitempty"`
	MediaType    string          `json:"mediaType,omitempty"`
	FinishReason string          `json:"finishReason,omitempty"`
}

// keepAlive is a comment, which clients ignore.
const keepAlive = ": keep-alive\n\n"

// endOfStream ends a stream, as the SDK's own server does.
const endOfStream = "data: [DONE]\n\n"

// appendChunk appends a chunk to a stream.
func appendChunk(b []byte, c chunk) ([]byte, error) {
	encoded, err := server.Marshal(c)
	if err != nil {
		return b, fmt.Errorf("vercel: chunk %s: %w", c.Type, err)
	}
	b = append(b, "data: "...)
	b = append(b, encoded...)
	return append(b, "\n\n"...), nil
}

// jsonOf returns a text as a JSON value: the object or list that it contains, or a JSON string.
//
// Inputs and outputs of tools are texts in Leat and values in the SDK. Numbers and words stay texts, because an output such as 007 is more
// often meant as one.
func jsonOf(text string) json.RawMessage {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		return safeJSON(json.RawMessage(trimmed))
	}
	return jsonString(text)
}

// safeJSON returns a JSON value that the SDK accepts: v, or a string of it if it is invalid or has a key that ends the chat in the SDK.
func safeJSON(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	unsafe := bytes.Contains(v, []byte("__proto__")) || bytes.Contains(v, []byte(`"constructor"`)) || bytes.Contains(v, []byte(`\u00`))
	if unsafe || !json.Valid(v) {
		return jsonString(string(v))
	}
	return v
}

// jsonString returns a text as a JSON string.
func jsonString(text string) json.RawMessage {
	b, err := server.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // a string can always be marshalled
	}
	return b
}

// textOf returns the text of a JSON value that a client sent: the content of a string, or the value itself.
//
// Agents get answers as texts, but a page may answer with any value. Other values than strings reach the agent as JSON.
func textOf(v json.RawMessage) string {
	var s string
	if err := json.Unmarshal(v, &s); err == nil {
		return s
	}
	return string(bytes.TrimSpace(v))
}
