package openairesponses

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// frame is any event of the stream. The texts of deltas are raw, because a character may be split between two of them.
type frame struct {
	Type    string          `json:"type"`
	Seq     *int64          `json:"sequence_number"`
	Output  int             `json:"output_index"`
	Content int             `json:"content_index"`
	Summary int             `json:"summary_index"`
	Delta   json.RawMessage `json:"delta"`

	// The final text of a "done" event, under a key that depends on its type.
	Text      *string `json:"text"`
	Refusal   *string `json:"refusal"`
	Arguments *string `json:"arguments"`
	Input     *string `json:"input"`
	Code      *string `json:"code"` // the code of a tool, or that of an error in the older form

	Part     *content        `json:"part"`
	Item     *item           `json:"item"`
	Response *response       `json:"response"`
	Error    json.RawMessage `json:"error"`
	Message  string          `json:"message"` // of an error in the older form
}

// content is a content part of a message or reasoning, or an entry of a summary.
type content struct {
	Type    string  `json:"type"`
	Text    *string `json:"text"`
	Refusal *string `json:"refusal"`
}

// response is the response object of the first and last events. Output is complete only in the last one.
type response struct {
	ID         string   `json:"id"`
	Model      string   `json:"model"`
	Error      *failure `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage  *usage `json:"usage"`
	Output []item `json:"output"`
}

// failure is the error of a response or of an error event.
type failure struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// usage is the token usage of one response. The input includes the cached tokens, which [event.Usage] counts separately.
type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	In     struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// total returns the usage as readers see it, with the cached tokens apart from the input.
func (u *usage) total() event.Usage {
	return event.Usage{
		Input: max(u.Input-u.In.Cached-u.In.CacheWrite, 0), CacheRead: u.In.Cached, CacheWrite: u.In.CacheWrite,
		Output: u.Output, Reasoning: u.OutputDetails.Reasoning,
	}
}

// item is an item of the output: a message, a reasoning, a call, or the output of a call. Fields whose type depends on the type of
// the item are raw.
type item struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	CallID string `json:"call_id"`
	ID     string `json:"id"`
	Name   string `json:"name"`

	Content json.RawMessage `json:"content"`
	Summary json.RawMessage `json:"summary"`

	// The input of a call.
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Code      string          `json:"code"`
	Action    json.RawMessage `json:"action"`
	Queries   json.RawMessage `json:"queries"`
	Operation json.RawMessage `json:"operation"`

	// The result of a call.
	Output  json.RawMessage `json:"output"`
	Outputs json.RawMessage `json:"outputs"`
	Results json.RawMessage `json:"results"`
	Result  string          `json:"result"` // an image in base64, or the output of a program
	Tools   json.RawMessage `json:"tools"`  // the tools that a search found
	Format  string          `json:"output_format"`
	Error   json.RawMessage `json:"error"`

	Execution string `json:"execution"` // of a tool search: "server" or "client"
	Server    string `json:"server_label"`
	Request   string `json:"approval_request_id"`
	Approve   *bool  `json:"approve"`
}

// pieces decodes the content or the summary of an item. It returns nil for any other shape.
func pieces(raw json.RawMessage) []content {
	// An item of another type may use the same key for a text.
	var contents []content
	if json.Unmarshal(raw, &contents) != nil {
		return nil
	}
	return contents
}

// The types of items with special rules, and the suffixes that all other calls and outputs share.
const (
	callSuffix   = "_call"
	outputSuffix = "_call_output"
	search       = "tool_search_call"
	searchOutput = "tool_search_output"
	// program is code that calls the client's tools. Its output may be in a later response, because the client runs its tools in between.
	program       = "program"
	programOutput = "program_output"
)

// tool reports whether the item is shown as a tool: a call, a list of an MCP server's tools, or a request for an approval.
func (i *item) tool() bool {
	switch i.Type {
	case "mcp_list_tools", approvalRequest, program:
		return true
	}
	return strings.HasSuffix(i.Type, callSuffix)
}

// output reports whether the item is the output of a call.
func (i *item) output() bool {
	return strings.HasSuffix(i.Type, outputSuffix) || i.Type == searchOutput || i.Type == programOutput
}

// runsOnServer reports whether the server runs the call itself.
func (i *item) runsOnServer() bool {
	return serverCalls[i.Type] && (i.Type != search || i.Execution != "client")
}

// serverCalls has the types of calls that the server runs itself.
var serverCalls = map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "tool_search_call": true,
}

// title returns the name of the tool. A tool of the server has no name, so that of its type is used, without the suffix "_call".
func (i *item) title() string {
	return cmp.Or(i.Name, strings.TrimSuffix(i.Type, callSuffix))
}

// retryable has the error codes and types after which a retry may succeed.
var retryable = map[string]bool{
	"server_error": true, "rate_limit_exceeded": true, "rate_limit_error": true, "overloaded_error": true,
	"vector_store_timeout": true, "timeout": true, "service_unavailable": true,
}

// error returns the error that readers see. insufficient_quota has the type of a rate limit, but needs a payment, so a retry doesn't help.
func (f failure) error() *event.Error {
	code := cmp.Or(f.Code, f.Type)
	isRetryable := retryable[f.Code] || retryable[f.Type] && f.Code != "insufficient_quota"
	return &event.Error{Code: code, Message: cmp.Or(f.Message, code, "the response failed"), Retryable: isRetryable}
}
