package llmtest

import (
	"encoding/json"
	"slices"
	"strings"
)

// checkAnthropic enforces the rules of the Messages API: content blocks aren't empty, files come only from the
// user, the thinking budget is below max_tokens, and temperature excludes thinking. The texts of the refusals
// resemble those of the real API, since package llm classifies errors by their texts.
func checkAnthropic(raw []byte) *refusal {
	var b struct {
		Model       string   `json:"model"`
		MaxTokens   int      `json:"max_tokens"`
		Stream      bool     `json:"stream"`
		System      string   `json:"system"`
		Temperature *float64 `json:"temperature"`
		Thinking    *struct {
			Type   string `json:"type"`
			Budget int    `json:"budget_tokens"`
		} `json:"thinking"`
		Tools []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			InputSchema schema `json:"input_schema"`
		} `json:"tools"`
		Messages []struct {
			Role    string `json:"role"`
			Content []struct {
				Type   string `json:"type"`
				Text   string `json:"text"`
				Title  string `json:"title"`
				Source *struct {
					Type      string `json:"type"`
					MediaType string `json:"media_type"`
					Data      []byte `json:"data"`
				} `json:"source"`
				Thinking  string         `json:"thinking"`
				Signature string         `json:"signature"`
				ID        string         `json:"id"`
				Name      string         `json:"name"`
				Input     map[string]any `json:"input"`
				ToolUseID string         `json:"tool_use_id"`
				Result    *string        `json:"content"`
				IsError   bool           `json:"is_error"`
			} `json:"content"`
		} `json:"messages"`
	}
	if no := strict(raw, &b); no != nil {
		return no
	}
	for i, t := range b.Tools {
		if t.Name == "" || !t.InputSchema.isObject() {
			return bad("tools.%d: name and input_schema are required", i)
		}
	}
	var roles []string
	var open callIDs
	for i, m := range b.Messages {
		roles = append(roles, m.Role)
		if len(m.Content) == 0 {
			return bad("messages.%d: all messages must have non-empty content", i)
		}
		for j, c := range m.Content {
			switch {
			case c.Type == "thinking" && m.Role == "assistant" && c.Signature != "" && j == 0:
			case c.Type == "tool_use" && m.Role == "assistant" && c.ID != "" && c.Name != "" && c.Input != nil && len(b.Tools) > 0:
				open.ask(c.ID)
			case c.Type == "tool_result" && m.Role == "user" && c.Result != nil && open.answer(c.ToolUseID):
			case c.Type == "text" && strings.TrimSpace(c.Text) != "" && c.Source == nil:
			case c.Type == "image" && c.Source != nil && c.Source.Type == "base64" && strings.HasPrefix(c.Source.MediaType, "image/") && len(c.Source.Data) > 0 && m.Role == "user":
			case c.Type == "document" && c.Source != nil && c.Source.MediaType == "application/pdf" && m.Role == "user":
			default:
				return bad("messages.%d.content: %s is not allowed so", i, c.Type)
			}
		}
		if m.Role == "user" && len(open) > 0 {
			return bad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %v", i, open)
		}
	}
	if no := turns(roles, "assistant"); no != nil {
		return no
	}
	switch {
	case !b.Stream:
		return bad("stream: this test streams")
	case b.MaxTokens < 1:
		return bad("max_tokens: field required")
	case b.Thinking != nil && b.Thinking.Type == "enabled" && (b.Thinking.Budget < 1024 || b.Thinking.Budget >= b.MaxTokens):
		return bad("thinking.budget_tokens: must be at least 1024 and below max_tokens")
	case b.Thinking != nil && b.Thinking.Type != "disabled" && b.Temperature != nil:
		return bad("temperature may only be set to 1 when thinking is enabled")
	}
	return nil
}

// checkChat enforces the rules of Chat Completions. The content of a message is a string or a list of parts.
// The system prompt, if any, is the first message and doesn't count for the alternation of roles. The stream
// must request the usage, which the last frame then has.
func checkChat(raw []byte) *refusal {
	var b struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions *struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Temperature         *float64 `json:"temperature"`
		MaxTokens           int      `json:"max_tokens"`
		MaxCompletionTokens int      `json:"max_completion_tokens"`
		ReasoningEffort     string   `json:"reasoning_effort"`
		Tools               []tool   `json:"tools"`
		Messages            []struct {
			Role             string          `json:"role"`
			Content          json.RawMessage `json:"content"`
			Reasoning        string          `json:"reasoning"`
			ReasoningContent string          `json:"reasoning_content"`
			ToolCallID       string          `json:"tool_call_id"`
			ToolCalls        []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
				Extra json.RawMessage `json:"extra_content"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if no := strict(raw, &b); no != nil {
		return no
	}
	if no := checkTools(b.Tools); no != nil {
		return no
	}
	if !b.Stream || b.StreamOptions == nil || !b.StreamOptions.IncludeUsage {
		return bad("stream: this test streams, with usage")
	}
	var roles []string
	var open callIDs
	for i, m := range b.Messages {
		if i == 0 && m.Role == "system" {
			continue
		}
		var text string
		isText := json.Unmarshal(m.Content, &text) == nil && text != ""
		switch {
		case m.Role == "tool":
			if !isText || !open.answer(m.ToolCallID) {
				return bad("messages.%d: a tool message must follow the call with its id and have a content", i)
			}
			roles = merged(roles, "user")
			continue
		case len(open) > 0:
			return bad("messages.%d: tool_call_ids did not have response messages: %v", i, open)
		}
		roles = append(roles, m.Role)
		for _, c := range m.ToolCalls {
			if m.Role != "assistant" || c.Type != "function" || c.Function.Name == "" || !object(c.Function.Arguments) {
				return bad("messages.%d: invalid call %q", i, c.ID)
			}
			open.ask(c.ID)
		}
		if isText || string(m.Content) == "null" && len(m.ToolCalls) > 0 {
			continue
		}
		var parts []struct {
			Type  string `json:"type"`
			Text  string `json:"text"`
			Image *struct {
				URL string `json:"url"`
			} `json:"image_url"`
			File *struct {
				Name string `json:"filename"`
				Data string `json:"file_data"`
			} `json:"file"`
		}
		if no := strict(m.Content, &parts); no != nil || len(parts) == 0 {
			return bad("messages.%d.content is neither a text nor a list of parts", i)
		}
		for _, p := range parts {
			switch {
			case p.Type == "text" && p.Text != "":
			case p.Type == "image_url" && p.Image != nil && dataURL(p.Image.URL):
			case p.Type == "file" && p.File != nil && p.File.Name != "" && dataURL(p.File.Data):
			default:
				return bad("messages.%d.content: invalid part %s", i, p.Type)
			}
		}
	}
	return turns(roles, "assistant")
}

// checkResponses enforces the rules of the Responses API. A background response must be stored. The type of a
// text depends on the role: the real API refuses input_text from the assistant and output_text from the user.
func checkResponses(raw []byte) *refusal {
	var b struct {
		Model           string   `json:"model"`
		Instructions    string   `json:"instructions"`
		Stream          bool     `json:"stream"`
		Background      bool     `json:"background"`
		Store           *bool    `json:"store"`
		Temperature     *float64 `json:"temperature"`
		MaxOutputTokens int      `json:"max_output_tokens"`
		Reasoning       *struct {
			Effort  string `json:"effort"`
			Summary string `json:"summary"`
		} `json:"reasoning"`
		Previous string   `json:"previous_response_id"`
		Include  []string `json:"include"`
		Tools    []struct {
			Type        string `json:"type"`
			Name        string `json:"name"`
			Description string `json:"description"`
			Parameters  schema `json:"parameters"`
			Strict      *bool  `json:"strict"`
		} `json:"tools"`
		Input []struct {
			Type      string `json:"type"`
			ID        string `json:"id"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
			Output    string `json:"output"`
			Summary   []any  `json:"summary"`
			Encrypted string `json:"encrypted_content"`
			Phase     string `json:"phase"`
			Role      string `json:"role"`
			Content   []struct {
				Type     string `json:"type"`
				Text     string `json:"text"`
				ImageURL string `json:"image_url"`
				FileName string `json:"filename"`
				FileData string `json:"file_data"`
			} `json:"content"`
		} `json:"input"`
	}
	if no := strict(raw, &b); no != nil {
		return no
	}
	if !b.Stream {
		return bad("stream: this test streams")
	}
	if b.Background && b.Store != nil && !*b.Store {
		return bad("Background mode requires store to be true")
	}
	for i, t := range b.Tools {
		if t.Type != "function" || t.Name == "" || !t.Parameters.isObject() || t.Strict == nil || *t.Strict {
			return bad("Invalid schema for function '%s' in tools[%d]", t.Name, i)
		}
	}
	var roles []string
	var open callIDs
	for i, m := range b.Input {
		switch {
		case m.Type == "function_call" && m.Name != "" && object(m.Arguments) && b.Previous == "":
			open.ask(m.CallID)
			roles = merged(roles, "assistant")
			continue
		// The call of an output is in the previous response, or before it.
		case m.Type == "function_call_output" && m.Output != "" && (b.Previous != "" && m.CallID != "" || open.answer(m.CallID)):
			roles = merged(roles, "user")
			continue
		case m.Type == "reasoning" && m.ID != "" && m.Summary != nil && m.Encrypted != "":
			roles = merged(roles, "assistant")
			continue
		case m.Type != "":
			return bad("Invalid item '%s' in input[%d]", m.Type, i)
		}
		if m.Role == "assistant" {
			roles = merged(roles, m.Role) // a message may be next to a reasoning
		} else {
			roles = append(roles, m.Role)
		}
		for _, c := range m.Content {
			switch {
			case c.Type == "input_text" && m.Role == "user" && c.Text != "":
			case c.Type == "output_text" && m.Role == "assistant" && c.Text != "":
			case c.Type == "input_image" && m.Role == "user" && dataURL(c.ImageURL):
			case c.Type == "input_file" && m.Role == "user" && c.FileName != "" && dataURL(c.FileData):
			default:
				return bad("Invalid value: '%s' in input[%d]", c.Type, i)
			}
		}
	}
	if len(open) > 0 {
		return bad("No tool output found for function call %v.", open)
	}
	return turns(roles, "assistant")
}

// checkGemini enforces the rules of generateContent: every part has a text or a file. The error of an unknown
// field is INVALID_ARGUMENT rather than OpenAI's type. The role of the model is "model".
func checkGemini(raw []byte) *refusal {
	// A part of contents or of the system prompt; a file's bytes are base64 in JSON.
	type part struct {
		Text   string `json:"text"`
		Inline *struct {
			MIME string `json:"mimeType"`
			Data []byte `json:"data"`
		} `json:"inlineData"`
		Thought   bool   `json:"thought"`
		Signature string `json:"thoughtSignature"`
		Call      *struct {
			ID   string         `json:"id"`
			Name string         `json:"name"`
			Args map[string]any `json:"args"`
		} `json:"functionCall"`
		Response *struct {
			ID     string         `json:"id"`
			Name   string         `json:"name"`
			Result map[string]any `json:"response"`
		} `json:"functionResponse"`
	}
	var b struct {
		Tools []struct {
			Functions []struct {
				Name        string  `json:"name"`
				Description string  `json:"description"`
				Parameters  *schema `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []part `json:"parts"`
		} `json:"contents"`
		System *struct {
			Parts []part `json:"parts"`
		} `json:"systemInstruction"`
		Generation *struct {
			Temperature *float64 `json:"temperature"`
			MaxTokens   int      `json:"maxOutputTokens"`
			Thinking    *struct {
				Budget  *int `json:"thinkingBudget"`
				Include bool `json:"includeThoughts"`
			} `json:"thinkingConfig"`
		} `json:"generationConfig"`
	}
	if no := strict(raw, &b); no != nil {
		return &refusal{no.status, "INVALID_ARGUMENT", "Invalid JSON payload received. " + no.message}
	}
	for _, t := range b.Tools {
		for _, f := range t.Functions {
			if f.Name == "" || f.Parameters != nil && (!f.Parameters.isObject() || len(f.Parameters.Properties) == 0) {
				return &refusal{400, "INVALID_ARGUMENT", "parameters.properties: should be non-empty for OBJECT type, in " + f.Name}
			}
		}
	}
	var roles []string
	var open []string // names of the calls without a result
	for i, c := range b.Contents {
		roles = append(roles, c.Role)
		for _, p := range c.Parts {
			switch {
			case p.Call != nil && c.Role == "model":
				if len(open) == 0 && p.Signature == "" {
					return &refusal{400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts."}
				}
				open = append(open, p.Call.Name)
				continue
			case p.Response != nil && c.Role == "user" && len(open) > 0 && p.Response.Name == open[0] && len(p.Response.Result) == 1:
				open = open[1:]
				continue
			}
			if p.Text == "" && (p.Inline == nil || p.Inline.MIME == "" || len(p.Inline.Data) == 0) {
				return &refusal{400, "INVALID_ARGUMENT", "contents.parts: required oneof field 'data' must have one initialized field, in " + string(rune('0'+i))}
			}
		}
	}
	if len(open) > 0 {
		return &refusal{400, "INVALID_ARGUMENT", "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."}
	}
	return turns(roles, "model")
}

// checkOllama enforces the rules of /api/chat. The field think is a boolean or a level. The roles must
// alternate here too, since the templates of many models require it.
func checkOllama(raw []byte) *refusal {
	var b struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Think   any    `json:"think"`
		Options *struct {
			Temperature *float64 `json:"temperature"`
			NumPredict  int      `json:"num_predict"`
		} `json:"options"`
		Tools    []tool `json:"tools"`
		Messages []struct {
			Role      string   `json:"role"`
			Content   string   `json:"content"`
			Images    [][]byte `json:"images"`
			Thinking  string   `json:"thinking"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string         `json:"name"`
					Arguments map[string]any `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
			ToolName   string `json:"tool_name"`
			ToolCallID string `json:"tool_call_id"`
		} `json:"messages"`
	}
	if no := strict(raw, &b); no != nil {
		return no
	}
	if no := checkTools(b.Tools); no != nil {
		return no
	}
	if b.Think != nil && b.Think != true && b.Think != false && !slices.Contains([]any{"low", "medium", "high"}, b.Think) {
		return bad("invalid think value")
	}
	var roles []string
	for i, m := range b.Messages {
		if i == 0 && m.Role == "system" {
			continue
		}
		if m.Role == "tool" && m.ToolName != "" {
			roles = merged(roles, "user")
			continue
		}
		roles = append(roles, m.Role)
		for _, c := range m.ToolCalls {
			if m.Role != "assistant" || c.Function.Name == "" || c.Function.Arguments == nil {
				return bad("messages.%d: invalid call", i)
			}
		}
	}
	return turns(roles, "assistant")
}
