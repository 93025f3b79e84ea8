package letta

import (
	"encoding/json"
	"strings"
)

// AskTool is the tool by which an agent of Letta Code asks a person. To allow it is to answer.
const AskTool = "AskUserQuestion"

type questionInput struct {
	Questions []struct {
		Question string `json:"question"`
		Options  []struct {
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
}

// promptOf is what is asked, in words, and what there is to choose from where it is one question.
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

// AnswerTo returns the tool's input with what a person has answered, each question the same where there are several.
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
