package anthropic

import (
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// frame is any event of the stream. Texts are raw, because a character may be split between two of them.
type frame struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Delta   *delta          `json:"delta"`
	Message *message        `json:"message"`
	Block   *block          `json:"content_block"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// delta is the delta of a block, or in a message_delta the stop reason.
type delta struct {
	Type        string          `json:"type"`
	Text        json.RawMessage `json:"text"`
	Thinking    json.RawMessage `json:"thinking"`
	PartialJSON json.RawMessage `json:"partial_json"`
	StopReason  string          `json:"stop_reason"`
	StopDetails *struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
}

// message is the message of a message_start. Its content is empty there.
type message struct {
	ID    string `json:"id"`
	Model string `json:"model"`
	Usage *usage `json:"usage"`
}

// block is a block at its start. ToolUseID, Content and IsError belong to results, To to a block of type fallback.
type block struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Thinking  json.RawMessage `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	To        *struct {
		Model string `json:"model"`
	} `json:"to"`
}

// usage is the total of a message so far, in tokens. A number that a frame leaves out is unchanged, so the fields are pointers.
type usage struct {
	Input      *int64 `json:"input_tokens,omitempty"`
	Output     *int64 `json:"output_tokens,omitempty"`
	CacheRead  *int64 `json:"cache_read_input_tokens,omitempty"`
	CacheWrite *int64 `json:"cache_creation_input_tokens,omitempty"`
}

// failure is the error of an error event.
type failure struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// retryable has the types of errors after which a retry may succeed.
var retryable = map[string]bool{
	"overloaded_error": true,
	"rate_limit_error": true,
	"api_error":        true,
	"timeout_error":    true,
}

// scan reads the delta of a text in the order of keys in which the upstream writes it, without encoding/json. It returns the
// block's index, the field and the text as a JSON token. For any other form of the same JSON it returns false, and the frame is
// decoded by encoding/json.
func scan(b []byte) (index int, f event.Field, token []byte, ok bool) {
	s := jsonscan.New(b)
	if !s.Lit(`{"type":"content_block_delta","index":`) {
		return 0, "", nil, false
	}
	if index, ok = s.Int(); !ok || !s.Lit(`,"delta":{"type":"`) {
		return 0, "", nil, false
	}
	switch {
	case s.Lit(`text_delta","text":`), s.Lit(`thinking_delta","thinking":`):
	case s.Lit(`input_json_delta","partial_json":`):
		f = event.Input
	default:
		return 0, "", nil, false
	}
	if token, ok = s.String(); !ok || !s.Lit("}") {
		return 0, "", nil, false
	}
	s.Space()
	return index, f, token, s.Lit("}") && s.End()
}
