// Questions to the person who uses Letta Code.
//
// Letta Code runs the tools of its agents itself, so it takes each request for a call of one of its tools. It would run a tool that has the same name as
// the agent's, on the machine of its user, and answers others with an error. Only its tool AskUserQuestion asks the person, so approvals and questions are
// calls of that tool. With -p it refuses the tool, with a reason that the agent gets.

package letta

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// askTool is the tool of Letta Code that asks its user.
const askTool = "AskUserQuestion"

// isAsker reports whether a request is from a client that asks its user with [askTool]: Letta Code, also with -p, where it doesn't offer the tool, or a
// program that offers a tool of the same name. Letta Code's resumes and lists don't name the tools, but all of its requests have the header.
func isAsker(r *http.Request, tools []agent.ClientTool) bool {
	return r.Header.Get("X-Letta-Source") == "letta-code" || slices.ContainsFunc(tools, func(t agent.ClientTool) bool { return t.Name == askTool })
}

// offeredTools returns the tools of a client that the agent may call: all but [askTool], because an agent asks by a question.
func offeredTools(tools []agent.ClientTool) []agent.ClientTool {
	return slices.DeleteFunc(slices.Clone(tools), func(t agent.ClientTool) bool { return t.Name == askTool })
}

// askInput is the input of [askTool].
type askInput struct {
	Questions []question `json:"questions"`
}

// question is one question. Letta Code shows a form only if there are two to four options, each with a description. The person may always type something else.
type question struct {
	Question string   `json:"question"`
	Header   string   `json:"header"` // at most 12 characters
	Options  []option `json:"options"`
	IsMulti  bool     `json:"multiSelect"`
}

// option is a choice.
type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// maxOptions is how many options a question may have. The others are in its text, for people to type.
const maxOptions = 4

// The labels of an approval, and those that fill up a question with fewer than two options. The latter are sent to the agent as they are.
const (
	labelYes    = "Yes"
	labelNo     = "No"
	labelDecide = "You decide"
	labelSkip   = "Skip this question"
)

// questionOf returns a request as a question. The arguments are those of the tool that an approval is about: what a person allows must be visible.
func questionOf(r *event.Request, arguments string) question {
	if r.Kind == event.RequestApproval {
		text := cmp.Or(r.Prompt, "May the agent continue?")
		if r.Tool != "" {
			text += "\n\n" + r.Tool + codeOf(arguments)
		}
		options := append([]option{{labelYes, "Allow it"}, {labelNo, "Refuse it, or type why"}}, optionsOf(r.Options)...)
		return withOptions(question{Question: text, Header: "Approval"}, options)
	}
	options := optionsOf(r.Options)
	for _, o := range []option{{labelDecide, "Leave it to the agent"}, {labelSkip, "Don't answer"}} {
		if len(options) < 2 {
			options = append(options, o)
		}
	}
	return withOptions(question{Question: cmp.Or(r.Prompt, "The agent asks for an answer."), Header: "Question"}, options)
}

// optionsOf returns the options of a request. Labels must not be empty.
func optionsOf(labels []string) (options []option) {
	for _, label := range labels {
		if label != "" {
			options = append(options, option{Label: label})
		}
	}
	return options
}

// withOptions returns a question with its options. Those that don't fit are in the text.
//
// The text has no straight quotation marks: Letta Code's summary of the answer ends a question at the first one.
func withOptions(q question, options []option) question {
	q.Options = options[:min(len(options), maxOptions)]
	for i, o := range options[len(q.Options):] {
		if i == 0 {
			q.Question += "\n\nOr type:\n"
		}
		q.Question += "\n- " + o.Label
	}
	q.Question = strings.ReplaceAll(q.Question, `"`, "”")
	return q
}

// codeOf returns arguments as Markdown code, which Letta Code shows as they are, or "" for none.
func codeOf(arguments string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(arguments)) == nil {
		arguments = b.String()
	}
	switch {
	case arguments == "" || arguments == "{}":
		return ""
	case !strings.ContainsAny(arguments, "`\n"):
		return " `" + arguments + "`"
	}
	fence := "```"
	for strings.Contains(arguments, fence) {
		fence += "`"
	}
	return ":\n" + fence + "\n" + arguments + "\n" + fence
}

// The sentence with which [askTool] returns an answer: the question and the answer are in between.
const (
	answerBegin  = `User has answered your questions: "`
	answerMiddle = `"="`
	answerEnd    = `". You can now continue with the user's answers in mind.`
)

// sentenceOf returns an answer as askTool does, so that a window of Letta Code shows one that was given elsewhere like its own.
func sentenceOf(c *call, a *event.Answer) string {
	var in askInput
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil || len(in.Questions) == 0 {
		return cmp.Or(a.Text, string(a.Decision))
	}
	label := cmp.Or(a.Text, string(a.Decision))
	switch a.Decision {
	case event.Approve:
		label = labelYes
	case event.Deny:
		label = cmp.Or(a.Text, labelNo)
	}
	return answerBegin + in.Questions[0].Question + answerMiddle + label + answerEnd
}

// commandOf returns the answer that the result of [askTool] means. What a person types for an approval is the reason to refuse it: only the option allows it.
func commandOf(r *event.Request, c *call, result string) gateway.Command {
	label := result
	var in askInput
	if err := json.Unmarshal([]byte(c.Arguments), &in); err == nil && len(in.Questions) == 1 {
		if end, ok := strings.CutPrefix(result, answerBegin+in.Questions[0].Question+answerMiddle); ok {
			label = strings.TrimSuffix(end, answerEnd)
		}
	}
	label = strings.TrimSpace(label)
	if r.Kind != event.RequestApproval {
		return chats.OutputAnswer(r, label)
	}
	switch {
	case strings.EqualFold(label, labelYes):
		return gateway.Command{Decision: event.Approve}
	case strings.EqualFold(label, labelNo):
		return gateway.Command{Decision: event.Deny}
	case slices.Contains(r.Options, label):
		return gateway.Command{Decision: event.Decision(label)}
	}
	return gateway.Command{Decision: event.Deny, Text: label}
}
