package demo

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/leat-dev/leat/event"
)

// greeting matches a message that only greets or asks what the agent can do. The text after the first words is
// short and has no digits, so that "hello, what is 2+2?" is answered as a calculation.
var greeting = regexp.MustCompile(`(?i)^(hi|hello|hey|good (morning|evening|day|afternoon)|who are you|what can you do)\b[^\d]{0,40}$`)

// help lists what the agent can do. It is also the answer to a greeting and to an empty message.
func help(s *stage, q question) {
	s.think("This looks like a first message. I'll list what I can do.")
	s.say("Hello! I'm the **demo agent** of this gateway. I use no model: every answer is computed, not invented.\n\n")
	s.say("Ask me, for example:\n\n" +
		"- `What is 12 * (3 + 4) / 5?`\n" +
		"- `What day is 2027-01-01?` or `What time is it?`\n" +
		"- `How many r's are in strawberry?`\n" +
		"- any text, to see what is in it, or code between fences\n" +
		"- `What did I say?`\n\n")
	s.say("Messages that start with one of these words show a special feature:\n\n")
	rows := make([][]string, 0, len(commands)+1)
	for _, c := range commands {
		rows = append(rows, []string{"`" + c.word + "`", c.help})
	}
	rows = append(rows, []string{"`slow`", "before any other message: the same answer, slowly, so that you can stop it or reload the page"})
	s.say(table([]string{"Word", "Result"}, rows))
	s.say("\nYou can write your own agent in a few lines of Go:\n\n```go\n" +
		"func (a *Echo) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {\n" +
		"\treturn out.Text(\"You said: \" + in.Message.Text)\n" +
		"}\n```\n")
}

// askedRecall matches questions about the conversation itself.
var askedRecall = regexp.MustCompile(`(?i)\b(what (did|have) (i|we|you) (say|said|talk|discuss)|summari[sz]e (this|our|the) (chat|conversation)|what was my (last|first) message)`)

// shownMessages is the maximum number of earlier messages that recall lists. The counts in its answer are of
// all messages.
const shownMessages = 12

// recall counts the words of the conversation so far and lists its last messages. It sees only the history that
// the gateway passes, which may be shorter than the conversation (limits.history_bytes).
func recall(s *stage, q question) {
	h := q.history
	s.think(fmt.Sprintf("The question is about this conversation. The gateway passed me %s of it.", plural(len(h), "earlier message")))
	s.status("Looking back…")
	t := s.call("history", "Read the conversation", map[string]int{"messages": len(h)})
	agentCount, userCount := 0, 0
	var rows [][]string
	for i, m := range h {
		n := len(wordsOf(m.Text))
		if m.Role == event.User {
			userCount += n
		} else {
			agentCount += n
		}
		if i >= len(h)-shownMessages {
			rows = append(rows, []string{fmt.Sprint(i + 1), string(m.Role), clip(strings.Join(strings.Fields(m.Text), " "), 50)})
			t.print(fmt.Sprintf("%d %s: %s", i+1, m.Role, plural(n, "word")))
		}
	}
	t.end()
	s.status(fmt.Sprintf("Looked at %s", plural(len(h), "message")))
	if len(h) == 0 {
		s.say("There are no messages before this one.\n")
		return
	}
	s.say(fmt.Sprintf("Before this you said **%s** and I said **%s**. The last messages were:\n\n", plural(userCount, "word"), plural(agentCount, "word")))
	s.say(table([]string{"No.", "Role", "Text"}, rows))
}
