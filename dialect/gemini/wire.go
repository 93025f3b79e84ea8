package gemini

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// chunk is any frame of the stream. Texts stay raw, since a character may be split over two of them.
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

type candidate struct {
	Index   int `json:"index"`
	Content *struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	Finish  string `json:"finishReason"`
	Message string `json:"finishMessage"`
}

type part struct {
	Text    json.RawMessage `json:"text"`
	Thought bool            `json:"thought"`
	Call    *call           `json:"functionCall"`
	// ToolCall and ToolResponse are of tools that the server runs, since Gemini 3.
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

type call struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args"`
	Partial  []argument      `json:"partialArgs"`
	Continue bool            `json:"willContinue"`
}

// argument is a piece of one of a call's values.
type argument struct {
	Path     string          `json:"jsonPath"`
	String   json.RawMessage `json:"stringValue"`
	Number   json.Number     `json:"numberValue"`
	Bool     *bool           `json:"boolValue"`
	Continue bool            `json:"willContinue"`
}

// usage is the total so far; what a chunk leaves out stays as it was.
type usage struct {
	Prompt     *int64 `json:"promptTokenCount,omitempty"`
	Tools      *int64 `json:"toolUsePromptTokenCount,omitempty"`
	Cached     *int64 `json:"cachedContentTokenCount,omitempty"`
	Candidates *int64 `json:"candidatesTokenCount,omitempty"`
	Thoughts   *int64 `json:"thoughtsTokenCount,omitempty"`
}

func (u *usage) add(next *usage) {
	for _, f := range []struct{ to, from **int64 }{
		{&u.Prompt, &next.Prompt}, {&u.Tools, &next.Tools}, {&u.Cached, &next.Cached}, {&u.Candidates, &next.Candidates}, {&u.Thoughts, &next.Thoughts},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
}

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

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
}

func (f *failure) error() *event.Error {
	e := &event.Error{Code: strings.ToLower(f.Status), Message: f.Message, Retryable: f.Code == 408 || f.Code == 429 || f.Code >= 500}
	if e.Code == "" {
		e.Code = "error"
	}
	if e.Message == "" {
		e.Message = "the upstream failed"
	}
	return e
}

// completed has the finish reasons of complete answers.
var completed = map[string]bool{"STOP": true, "MAX_TOKENS": true, "FINISH_REASON_UNSPECIFIED": true}
