package agentsdk

import "encoding/json"

// frame is any event of the stream. Texts stay raw: a character may be split over two of them.
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

// usage is what a message has used; the runtime itself leaves it empty.
type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// result is what a tool gave.
type result struct {
	Output   *json.RawMessage `json:"output"`
	Metadata struct {
		IsError json.RawMessage `json:"is_error"`
		Error   json.RawMessage `json:"error"`
	} `json:"metadata"`
}
