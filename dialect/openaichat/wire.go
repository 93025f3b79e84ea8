package openaichat

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/leat-dev/leat/event"
)

// chunk is any frame of the stream. Texts stay raw, since a character may be split over two of them.
type chunk struct {
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Model   string          `json:"model"`
	Choices []wireChoice    `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"` // of an error that stands by itself
	Groq    *groq           `json:"x_groq"`
}

// groq is what Groq adds to its first and last chunks. Usage is here even if the request did not ask for it.
type groq struct {
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"` // why the stream was stopped early
}

type wireChoice struct {
	Index  int    `json:"index"`
	Delta  delta  `json:"delta"`
	Finish string `json:"finish_reason"`
}

type delta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ToolCalls        []call          `json:"tool_calls"`
	FunctionCall     *function       `json:"function_call"` // what tool_calls were called before
}

type call struct {
	Index    *int     `json:"index"`
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// usage is the total so far.
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

// failure is an error as servers write it: with a code that is a word or a status, or nothing but a text.
type failure struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  int             `json:"status_code"`
}

// retryable are the errors that another try may not meet.
var retryable = map[string]bool{
	"server_error": true, "internal_server_error": true, "InternalServerError": true, "api_error": true,
	"rate_limit_error": true, "rate_limit_exceeded": true, "rate_limit_reached": true,
	"overloaded_error": true, "overloaded": true, "service_unavailable": true, "engine_overloaded": true,
	"timeout": true, "timeout_error": true,
}

// readError takes the error of a chunk.
func readError(raw json.RawMessage) *event.Error {
	var f failure
	if json.Unmarshal(raw, &f) != nil {
		_ = json.Unmarshal(raw, &f.Message) // neither an object nor a text: then nothing is known of it
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
		e.Retryable = false // it comes with the status of a limit that passes
	}
	if e.Message == "" {
		if e.Message = e.Code; e.Message == "" {
			e.Message = "the upstream failed"
		}
	}
	return e
}

// null reports whether a value is absent or null.
func null(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

// piece is an entry of a content that comes as a list.
type piece struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	Thinking []piece         `json:"thinking"`
}
