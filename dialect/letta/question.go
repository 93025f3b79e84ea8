package letta

import (
	"encoding/json"
	"strings"
)

// AskTool is the tool by which an agent of Letta Code asks a person. To allow it is to answer.
const AskTool = "AskUserQuestion"

type questions struct {
	Questions []struct {
		Question string `json:"question"`
		Options  []struct {
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
}

// question is what is asked, in words, and what there is to choose from where it is one question.
func question(input json.RawMessage) (prompt string, options []string) {
	var q questions
	if json.Unmarshal(input, &q) != nil {
		return "", nil
	}
	var all []string
	for _, one := range q.Questions {
		all = append(all, one.Question)
		if len(q.Questions) == 1 {
			for _, o := range one.Options {
				options = append(options, o.Label)
			}
		}
	}
	return strings.Join(all, "\n"), options
}

// AnswerTo returns the tool's input with what a person has answered, each question the same where there are several.
func AnswerTo(input json.RawMessage, said string) json.RawMessage {
	var q questions
	fields := map[string]any{}
	if json.Unmarshal(input, &q) != nil || json.Unmarshal(input, &fields) != nil {
		return input
	}
	answers := map[string]string{}
	for _, one := range q.Questions {
		answers[one.Question] = said
	}
	fields["answers"] = answers
	b, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return b
}
