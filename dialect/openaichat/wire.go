package openaichat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/leat-dev/leat/event"
)

// chunk is any frame of the stream. Texts are raw, because a character may be split between two of them.
type chunk struct {
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Model   string          `json:"model"`
	Choices []wireChoice    `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Groq    *groq           `json:"x_groq"`
}

// groq has the fields that Groq adds to its first and last chunks. It reports the usage here even if the request didn't ask for it.
type groq struct {
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"` // why the stream was stopped early
}

// wireChoice is what a chunk has for one choice. Finish is null or absent in all chunks but the last.
type wireChoice struct {
	Index  int    `json:"index"`
	Delta  delta  `json:"delta"`
	Finish string `json:"finish_reason"`
}

// delta has the new pieces of a choice. Content is a string or a list of pieces.
type delta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ToolCalls        []call          `json:"tool_calls"`
	FunctionCall     *function       `json:"function_call"` // the older form of tool_calls, with one call and no index
}

// call is a piece of a tool call. Only the first piece has ID and the name of the function.
type call struct {
	Index    *int     `json:"index"`
	ID       string   `json:"id"`
	Function function `json:"function"`
}

// function is the name of a tool, and a piece of its arguments.
type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// usage is the total so far, in tokens. The prompt includes the cached tokens, which [event.Usage] counts separately.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    *struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	OutputDetails *struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// total returns the usage as readers see it, with the cached tokens apart from the input.
func (u *usage) total() event.Usage {
	t := event.Usage{Input: u.Prompt, Output: u.Completion}
	if u.Details != nil {
		t.CacheRead, t.CacheWrite = u.Details.Cached, u.Details.CacheWrite
		t.Input = max(t.Input-t.CacheRead-t.CacheWrite, 0)
	}
	if u.OutputDetails != nil {
		t.Reasoning = u.OutputDetails.Reasoning
	}
	return t
}

// failure is an error as servers write it: an object whose code is a word or an HTTP status.
type failure struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  int             `json:"status_code"`
}

// retryable has the error codes and types after which a retry may succeed. The servers that imitate the API have their own names.
var retryable = map[string]bool{
	"server_error": true, "internal_server_error": true, "InternalServerError": true, "api_error": true,
	"rate_limit_error": true, "rate_limit_exceeded": true, "rate_limit_reached": true,
	"overloaded_error": true, "overloaded": true, "service_unavailable": true, "engine_overloaded": true,
	"timeout": true, "timeout_error": true,
}

// readError decodes the error of a chunk, which is an object or a text. An error of any other shape keeps only its default message, because
// the turn has failed whether or not the error can be read. The code is the first of the error's code, its type and its status.
func readError(raw json.RawMessage) *event.Error {
	var f failure
	if json.Unmarshal(raw, &f) != nil {
		_ = json.Unmarshal(raw, &f.Message)
	}
	e := &event.Error{Message: f.Message, Retryable: retryable[f.Type]}
	var status int
	if json.Unmarshal(f.Code, &e.Code) != nil && json.Unmarshal(f.Code, &status) == nil && status != 0 {
		f.Status = status
	}
	e.Retryable = e.Retryable || retryable[e.Code] || f.Status == 408 || f.Status == 429 || f.Status >= 500
	switch {
	case e.Code != "":
	case f.Type != "":
		e.Code = f.Type
	case f.Status != 0:
		e.Code = strconv.Itoa(f.Status)
	}
	if e.Code == "insufficient_quota" {
		e.Retryable = false // its status is 429, like that of a rate limit, but it needs a payment
	}
	e.Message = cmp.Or(e.Message, e.Code, "the upstream failed")
	return e
}

// null reports whether a value is absent or null.
func null(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

// piece is an entry of a content that is a list: a text, or a thinking block with texts.
type piece struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	Thinking []piece         `json:"thinking"`
}
