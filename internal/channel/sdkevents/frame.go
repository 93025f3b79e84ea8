package sdkevents

// The types of the events.
const (
	agentStart    = "agent_start"
	agentStop     = "agent_stop"
	iterStart     = "iteration_start"
	iterStop      = "iteration_stop"
	messageStart  = "message_start"
	messageDelta  = "message_delta"
	messageStop   = "message_stop"
	blockStart    = "content_block_start"
	blockDelta    = "content_block_delta"
	blockStop     = "content_block_stop"
	toolStart     = "tool_execution_start"
	toolOutput    = "tool_execution_output"
	toolResult    = "tool_execution_result"
	failure       = "error"
	textCancelled = "context canceled"       // the text of the error after a cancellation
	textLimit     = "max iterations reached" // the text of the error at the limit of iterations
)

// frame is any event of the stream. Numbers are pointers, because 0 is a valid index and iteration.
type frame struct {
	Type      string    `json:"type"`
	Message   *message  `json:"message,omitempty"`
	Index     *int      `json:"index,omitempty"`
	Block     *block    `json:"content_block,omitempty"`
	Delta     *delta    `json:"delta,omitempty"`
	Usage     *struct{} `json:"usage,omitempty"` // agentsdk sends an empty one
	ToolUseID string    `json:"tool_use_id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Output    any       `json:"output,omitempty"` // a string, or a result
	IsStderr  *bool     `json:"is_stderr,omitempty"`
	IsError   bool      `json:"is_error,omitempty"`
	Iteration *int      `json:"iteration,omitempty"`
}

// message is the message of a message_start frame.
type message struct {
	Role string `json:"role"`
}

// block is a content block, a text or a tool call.
type block struct {
	Type string `json:"type"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// delta is the growth of a block. Its type says which field grows.
type delta struct {
	Type       string `json:"type,omitempty"`
	Text       string `json:"text,omitempty"`
	Input      string `json:"partial_json,omitempty"` // a piece of JSON, as a string
	StopReason string `json:"stop_reason,omitempty"`
}

// result is the output of a tool_execution_result.
type result struct {
	Output   string    `json:"output,omitempty"`
	Metadata *metadata `json:"metadata,omitempty"`
}

// metadata marks a failure.
type metadata struct {
	Error   string `json:"error"`
	IsError bool   `json:"is_error"`
}
