package letta

import (
	"encoding/json"
	"slices"
)

// message is a Letta message: an event of a V1 stream, a delta of the App Server, or a line of the headless mode. Texts stay
// undecoded JSON, because a surrogate pair may be split over two messages.
type message struct {
	Type   string `json:"message_type"`
	ID     string `json:"id"`
	Otid   string `json:"otid"`
	Run    string `json:"run_id"`
	Step   string `json:"step_id"`
	Seq    *int64 `json:"seq_id"`
	Stop   string `json:"stop_reason"`
	Status string `json:"status"`

	Content   json.RawMessage `json:"content"` // a string, or a list of pieces
	Reasoning json.RawMessage `json:"reasoning"`
	State     string          `json:"state"` // of hidden reasoning

	Call  *call           `json:"tool_call"`
	Calls json.RawMessage `json:"tool_calls"` // an object, a list, or null

	CallID   string          `json:"tool_call_id"`
	ToolName string          `json:"tool_name"`
	ToolArgs json.RawMessage `json:"tool_args"`
	Return   json.RawMessage `json:"tool_return"`
	Stdout   []string        `json:"stdout"`
	Stderr   []string        `json:"stderr"`
	Returns  []toolReturn    `json:"tool_returns"`

	Message   string `json:"message"`
	ErrorType string `json:"error_type"`
	Retryable bool   `json:"retryable"`
	EventType string `json:"event_type"`

	Allowed []string `json:"auto_allowed_tool_call_ids"`
	Denied  []string `json:"auto_denied_tool_call_ids"`

	usage

	isHistory bool // from a list of stored messages, not from the stream
}

// call is a tool call. In a delta, ID and Name may be empty, and Arguments is a piece of the JSON text.
type call struct {
	ID        string          `json:"tool_call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// toolReturn is the result of one tool in a message with several. If Return is empty, Func has the result.
type toolReturn struct {
	CallID string          `json:"tool_call_id"`
	Status string          `json:"status"`
	Return json.RawMessage `json:"tool_return"`
	Func   json.RawMessage `json:"func_response"`
	Stdout []string        `json:"stdout"`
	Stderr []string        `json:"stderr"`
}

// usage is the token usage of one run. Prompt includes the cached and the written tokens.
type usage struct {
	Prompt          int64 `json:"prompt_tokens"`
	Completion      int64 `json:"completion_tokens"`
	CacheRead       int64 `json:"cached_input_tokens"`
	CacheWritten    int64 `json:"cache_write_tokens"`
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// frame is the wrapper that Letta Code puts around messages. A headless line is a frame and a message in one object.
type frame struct {
	Type     string          `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Event    json.RawMessage `json:"event"` // of the headless mode with partial messages
	Subagent string          `json:"subagent_id"`

	// Fields of turn_finished and result.
	Run     string          `json:"run_id"`
	Stop    string          `json:"stop_reason"`
	Error   json.RawMessage `json:"error"`
	Subtype string          `json:"subtype"`

	// Field of an error of the headless mode.
	API *struct {
		ErrorType string `json:"error_type"`
	} `json:"api_error"`

	Loop *struct {
		Active []string `json:"active_run_ids"`
	} `json:"loop_status"`

	RequestID string          `json:"request_id"`
	Request   *controlRequest `json:"request"`

	Messages []json.RawMessage `json:"messages"` // of conversation_messages_list_response; the newest first
}

// controlRequest is the App Server's question whether it may run a tool.
type controlRequest struct {
	Subtype string          `json:"subtype"`
	Tool    string          `json:"tool_name"`
	CallID  string          `json:"tool_call_id"`
	Input   json.RawMessage `json:"input"`
}

// stringValue returns the value of a JSON string, or "" for any other JSON.
func stringValue(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// returnText returns a tool's result as text: a string unchanged, a list of text pieces joined by newlines, and anything else
// as JSON.
func returnText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' {
		return stringValue(raw)
	}
	var pieces []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if raw[0] == '[' && json.Unmarshal(raw, &pieces) == nil {
		text := ""
		for i, p := range pieces {
			if p.Text == nil {
				return string(raw)
			}
			if i > 0 {
				text += "\n"
			}
			text += *p.Text
		}
		return text
	}
	return string(raw)
}

// fullText returns the text of a message that contains all of its part.
func (d *Decoder) fullText(m *message) (string, error) {
	if m.Type == "reasoning_message" {
		return stringValue(m.Reasoning), nil
	}
	texts, err := d.textPieces(m.Content)
	text := ""
	for _, p := range texts {
		text += stringValue(p.Text)
	}
	return text, err
}

// piece is a piece of a message's content.
type piece struct {
	Type string          `json:"type"`
	Text json.RawMessage `json:"text"` // absent in pieces that aren't texts
}

// textPieces returns the pieces of an assistant's content that are texts. The content is a string, a piece or a list of pieces. The result
// is valid until the next call.
func (d *Decoder) textPieces(raw json.RawMessage) ([]piece, error) {
	d.oneText[0] = piece{Text: raw}
	if len(raw) == 0 || string(raw) == "null" || raw[0] == '"' {
		return d.oneText[:], nil
	}
	list := d.oneText[:]
	if raw[0] == '{' {
		d.oneText[0] = piece{}
		if err := json.Unmarshal(raw, &list[0]); err != nil {
			return nil, err
		}
	} else {
		pieces, err := pieceLists.Read(&d.inPieces, raw)
		if err != nil {
			return nil, err
		}
		list = *pieces
	}
	return slices.DeleteFunc(list, func(p piece) bool { return len(p.Text) == 0 }), nil
}
