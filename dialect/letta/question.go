package letta

import (
	"encoding/json"
	"strings"
)

// AskTool is Letta Code's tool for questions to the user. A client answers by approving the call with the answers in its input.
const AskTool = "AskUserQuestion"

// questionInput is the input of AskTool.
type questionInput struct {
	Questions []struct {
		Question string `json:"question"`
		Options  []struct {
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
}

// promptOf returns the questions as text, and the options if there is exactly one question.
func promptOf(input json.RawMessage) (prompt string, options []string) {
	var q questionInput
	if json.Unmarshal(input, &q) != nil {
		return "", nil
	}
	var prompts []string
	for _, item := range q.Questions {
		prompts = append(prompts, item.Question)
		if len(q.Questions) == 1 {
			for _, o := range item.Options {
				options = append(options, o.Label)
			}
		}
	}
	return strings.Join(prompts, "\n"), options
}

// AnswerTo returns the tool's input with the user's answer. If there are several questions, each gets the same answer. Invalid
// input is returned unchanged.
func AnswerTo(input json.RawMessage, answer string) json.RawMessage {
	var q questionInput
	fields := map[string]any{}
	if json.Unmarshal(input, &q) != nil || json.Unmarshal(input, &fields) != nil {
		return input
	}
	answers := map[string]string{}
	for _, item := range q.Questions {
		answers[item.Question] = answer
	}
	fields["answers"] = answers
	b, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return b
}
