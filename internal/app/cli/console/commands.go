package console

import (
	"fmt"
	"regexp"
	"strings"
)

// slashCommands are the commands, in the order of the help. Tab completes only these. /exit is another name of /quit,
// which the help doesn't list.
var slashCommands = []struct{ name, help string }{
	{"/help", "show the commands and the keys"},
	{"/new", "start a new conversation"},
	{"/stop", "stop the answer"},
	{"/retry", "send your last message again"},
	{"/agents", "list the agents; /agents NAME talks to another one"},
	{"/open", "open this conversation in the browser"},
	{"/quit", "leave; a running answer continues"},
}

// keyHelp are the keys, in the order of the help.
var keyHelp = []struct{ name, help string }{
	{"Enter", "send"},
	{"Alt+Enter, Ctrl+J", "new line"},
	{"Up, Down", "earlier messages"},
	{"Tab", "complete a command"},
	{"Esc", "stop the answer"},
	{"Ctrl+C", "clear the input, or stop the answer; twice: leave"},
	{"Ctrl+D", "leave, if the input is empty"},
}

// commandName matches the first word of a command. A path such as /etc/hosts has a second slash and is a message.
var commandName = regexp.MustCompile(`^/[a-z]+$`)

// isCommand reports whether a line is a command. Further lines make it a message.
func isCommand(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return !strings.Contains(text, "\n") && commandName.MatchString(word)
}

// command runs a command. An unknown command is not sent as a message, because it is more likely a mistake. A message
// that begins with a slash is written with two.
func (m *model) command(text string) []effect {
	name, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch name {
	case "/help":
		m.help()
	case "/new":
		return []effect{startNew{m.choice}}
	case "/stop":
		return m.stop(true)
	case "/agents":
		return []effect{listAgents{argument}}
	case "/retry":
		return m.retry()
	case "/open":
		return []effect{open{}}
	case "/quit", "/exit":
		return m.leave()
	default:
		m.viewer.note(fmt.Sprintf("Unknown command %s. /help lists the commands; start a message with // to send it with a slash.", name))
	}
	return nil
}

// help prints the commands and the keys.
func (m *model) help() {
	for _, c := range slashCommands {
		m.viewer.note(fmt.Sprintf("%-10s %s", c.name, c.help))
	}
	for _, k := range keyHelp {
		m.viewer.note(fmt.Sprintf("%s: %s", k.name, k.help))
	}
}

// retry sends the last message of the user again, in place of what came after it. A running turn has to be stopped
// first, so that no answer is lost by mistake.
func (m *model) retry() []effect {
	switch {
	case m.turns.id != "":
		m.viewer.note("The answer is still running; stop it first.")
	case m.turns.last.ID == "":
		m.viewer.note("You have not sent a message yet.")
	default:
		return []effect{resend{m.turns.before, m.turns.lastText, m.choice, m.turns.last}}
	}
	return nil
}

// agentsListed prints the agents, or confirms the choice of one. The choice applies to the next messages of this
// program, and doesn't change the conversation's agent.
func (m *model) agentsListed(e listAgents, r result) {
	if r.err != nil {
		return
	}
	if e.choice != "" {
		if r.text == "" {
			m.viewer.note(fmt.Sprintf("No agent %q; /agents lists them.", e.choice))
			return
		}
		m.agent, m.choice = r.text, r.text
		m.viewer.note("Your next message goes to " + Clean(r.text) + ".")
		return
	}
	for i, name := range r.agents {
		mark := " "
		if name == m.agent {
			mark = "*"
		}
		m.viewer.note(fmt.Sprintf("%s %d %s", mark, i+1, Clean(name)))
	}
	m.viewer.note("/agents NAME talks to another agent.")
}

// complete completes the name of a command, or lists the ones that begin with the input.
func (m *model) complete() {
	text := m.editor.text()
	if !commandName.MatchString(text) && text != "/" {
		return
	}
	var matches []string
	for _, c := range slashCommands {
		if strings.HasPrefix(c.name, text) {
			matches = append(matches, c.name)
		}
	}
	switch len(matches) {
	case 0:
	case 1:
		m.editor.setText(matches[0])
	default:
		m.viewer.note(strings.Join(matches, "  "))
	}
}
