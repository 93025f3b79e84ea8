package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// chunk is any frame of the stream. Texts are raw, because a character may be split between two of them.
type chunk struct {
	Type       string      `json:"type"`
	Candidates []candidate `json:"candidates"`
	Feedback   *struct {
		Reason  string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *usage   `json:"usageMetadata"`
	Model string   `json:"modelVersion"`
	Error *failure `json:"error"`
}

// candidate is what a frame has for one candidate. Only its last frame has Finish and Message.
type candidate struct {
	Index   int `json:"index"`
	Content *struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	Finish  string `json:"finishReason"`
	Message string `json:"finishMessage"`
}

// part is a part of a candidate's content. Apart from Thought and Signature, one of the fields is set.
type part struct {
	Text    json.RawMessage `json:"text"`
	Thought bool            `json:"thought"`
	Call    *call           `json:"functionCall"`
	// ToolCall and ToolResponse belong to the tools that the server runs, since Gemini 3.
	ToolCall     *serverTool `json:"toolCall"`
	ToolResponse *serverTool `json:"toolResponse"`
	Inline       *struct {
		MIME string `json:"mimeType"`
		Name string `json:"displayName"`
		Data string `json:"data"`
	} `json:"inlineData"`
	File *struct {
		MIME string `json:"mimeType"`
		URI  string `json:"fileUri"`
	} `json:"fileData"`
	Code *struct {
		Code json.RawMessage `json:"code"`
	} `json:"executableCode"`
	Result *struct {
		Outcome string `json:"outcome"`
		Output  string `json:"output"`
	} `json:"codeExecutionResult"`
	Signature string `json:"thoughtSignature"`
}

// call is a functionCall: with Args if it is complete, or with Partial and Continue if its arguments are streamed, since Gemini 3.
type call struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args"`
	Partial  []argument      `json:"partialArgs"`
	Continue bool            `json:"willContinue"`
}

// argument is a value of a call's arguments, or a piece of a string if Continue is true. A value of null has none of the value fields.
type argument struct {
	Path     string          `json:"jsonPath"`
	String   json.RawMessage `json:"stringValue"`
	Number   json.Number     `json:"numberValue"`
	Bool     *bool           `json:"boolValue"`
	Continue bool            `json:"willContinue"`
}

// usage is the total so far, in tokens. A number that a chunk leaves out is unchanged, so the fields are pointers.
type usage struct {
	Prompt     *int64 `json:"promptTokenCount,omitempty"`
	Tools      *int64 `json:"toolUsePromptTokenCount,omitempty"`
	Cached     *int64 `json:"cachedContentTokenCount,omitempty"`
	Candidates *int64 `json:"candidatesTokenCount,omitempty"`
	Thoughts   *int64 `json:"thoughtsTokenCount,omitempty"`
}

// add replaces the numbers that next has, without keeping its pointers. They are totals, so they aren't summed.
func (u *usage) add(next *usage) {
	for _, f := range []struct{ to, from **int64 }{
		{&u.Prompt, &next.Prompt}, {&u.Tools, &next.Tools}, {&u.Cached, &next.Cached}, {&u.Candidates, &next.Candidates}, {&u.Thoughts, &next.Thoughts},
	} {
		if *f.from != nil {
			if *f.to == nil {
				*f.to = new(int64)
			}
			**f.to = **f.from
		}
	}
}

// total returns the usage as readers see it. The API counts cached tokens in the prompt, and thoughts apart from the candidates;
// [event.Usage] counts cached tokens apart and thoughts in the output.
func (u *usage) total() event.Usage {
	n := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return event.Usage{
		Input:     max(n(u.Prompt)-n(u.Cached), 0) + n(u.Tools),
		CacheRead: n(u.Cached),
		Output:    n(u.Candidates) + n(u.Thoughts),
		Reasoning: n(u.Thoughts),
	}
}

// failure is the error of the API. Code is the HTTP status, and Status its name, such as RESOURCE_EXHAUSTED.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
}

// error returns the error that readers see. A timeout, a rate limit and a failure of the server may be gone at a retry.
func (f *failure) error() *event.Error {
	return &event.Error{
		Code: cmp.Or(strings.ToLower(f.Status), "error"), Message: cmp.Or(f.Message, "the upstream failed"),
		Retryable: f.Code == 408 || f.Code == 429 || f.Code >= 500,
	}
}

// completed has the finish reasons of complete answers.
var completed = map[string]bool{"STOP": true, "MAX_TOKENS": true, "FINISH_REASON_UNSPECIFIED": true}
