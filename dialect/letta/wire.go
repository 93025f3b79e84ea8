package letta

import "encoding/json"

// message is a Letta message: an event of a V1 stream, a delta of the App Server, a line of the headless mode. Texts stay
// raw, since a character may be split over two of them.
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

	isHistory bool // it was read from the history
}

type call struct {
	ID        string          `json:"tool_call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type toolReturn struct {
	CallID string          `json:"tool_call_id"`
	Status string          `json:"status"`
	Return json.RawMessage `json:"tool_return"`
	Func   json.RawMessage `json:"func_response"`
	Stdout []string        `json:"stdout"`
	Stderr []string        `json:"stderr"`
}

type usage struct {
	Prompt          int64 `json:"prompt_tokens"`
	Completion      int64 `json:"completion_tokens"`
	CacheRead       int64 `json:"cached_input_tokens"`
	CacheWritten    int64 `json:"cache_write_tokens"`
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// frame is what Letta Code wraps messages in. Of a headless line the message is the frame itself.
type frame struct {
	Type     string          `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Event    json.RawMessage `json:"event"` // of the headless mode with partial messages
	Subagent string          `json:"subagent_id"`

	// turn_finished and result.
	Run     string          `json:"run_id"`
	Stop    string          `json:"stop_reason"`
	Error   json.RawMessage `json:"error"`
	Subtype string          `json:"subtype"`

	// error, of the headless mode.
	API *struct {
		ErrorType string `json:"error_type"`
	} `json:"api_error"`

	Loop *struct {
		Active []string `json:"active_run_ids"`
	} `json:"loop_status"`

	RequestID string          `json:"request_id"`
	Request   *controlRequest `json:"request"`

	Messages []json.RawMessage `json:"messages"` // of a list, the newest first
}

// controlRequest is the App Server's question whether a tool may be used.
type controlRequest struct {
	Subtype string          `json:"subtype"`
	Tool    string          `json:"tool_name"`
	CallID  string          `json:"tool_call_id"`
	Input   json.RawMessage `json:"input"`
}

// stringValue is a JSON string, "" for anything else.
func stringValue(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// returnText is a tool's return as text: a string as it is, the texts of a list of pieces, anything else as JSON.
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

// fullText is the text of a message that has all of it.
func (m *message) fullText() (string, error) {
	if m.Type == "reasoning_message" {
		return stringValue(m.Reasoning), nil
	}
	texts, err := textPieces(m.Content)
	text := ""
	for _, raw := range texts {
		text += stringValue(raw)
	}
	return text, err
}

// textPieces returns the texts of an assistant's content, as they stand.
func textPieces(raw json.RawMessage) ([]json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" || raw[0] == '"' {
		return []json.RawMessage{raw}, nil
	}
	var list []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if raw[0] == '{' {
		list = append(list, struct {
			Type string          `json:"type"`
			Text json.RawMessage `json:"text"`
		}{})
		if err := json.Unmarshal(raw, &list[0]); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var texts []json.RawMessage
	for _, p := range list {
		if len(p.Text) > 0 {
			texts = append(texts, p.Text)
		}
	}
	return texts, nil
}
