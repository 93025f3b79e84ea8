package agentsdk

import "encoding/json"

// frame is any event of the stream. Texts are raw, because a character may be split between two of them. Output is a string in output and
// error events and an object in a result. Iteration counts from 0.
type frame struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"message"`
	Block *struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
		ID   string          `json:"id"`
		Name string          `json:"name"`
	} `json:"content_block"`
	Delta *struct {
		Type        string          `json:"type"`
		Text        json.RawMessage `json:"text"`
		PartialJSON json.RawMessage `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
	} `json:"delta"`
	Usage     *usage          `json:"usage"`
	ToolUseID string          `json:"tool_use_id"`
	Name      string          `json:"name"`
	Output    json.RawMessage `json:"output"`
	IsStderr  *bool           `json:"is_stderr"`
	IsError   bool            `json:"is_error"`
	Iteration *int            `json:"iteration"`
}

// usage is the token usage of one message. The runtime itself leaves it empty.
type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// result is the outcome of a tool call. Output is nil if the result has only metadata.
type result struct {
	Output   *json.RawMessage `json:"output"`
	Metadata struct {
		IsError json.RawMessage `json:"is_error"`
		Error   json.RawMessage `json:"error"`
	} `json:"metadata"`
}
