package channel

import (
	"slices"
	"strings"
)

// The slash commands of all channels.
const (
	commandNew     = "new"
	commandStop    = "stop"
	commandAgent   = "agent"
	commandCompact = "compact"
	commandHelp    = "help"
	commandLink    = "link"
	commandAnswer  = "answer" // sent by buttons
	commandStart   = "start"  // sent by Telegram when a person opens the bot
)

// ParseCommand returns the slash command with which a text begins, without the name of the bot that groups add to it
// (/stop@name), and what follows it. If the text begins with none of Leat's commands, name is empty: the agent may have commands
// of its own.
func ParseCommand(text string) (name, args string) {
	word, args, _ := strings.Cut(strings.TrimSpace(text), " ")
	word, isCommand := strings.CutPrefix(word, "/")
	word, _, _ = strings.Cut(strings.ToLower(word), "@")
	isKnown := word == commandAnswer || word == commandStart || slices.ContainsFunc(commands, func(c Command) bool { return c.Name == word })
	if !isCommand || !isKnown {
		return "", ""
	}
	return word, strings.TrimSpace(args)
}

// Command is a slash command that people can use.
type Command struct {
	Name string
	// Argument names what can follow it, or is empty. If Required is set, something has to.
	Argument string
	Required bool
	About    string
}

// commands are the slash commands in the order of /help.
var commands = []Command{
	{commandNew, "", false, "starts a fresh session"},
	{commandStop, "", false, "stops the answer"},
	{commandAgent, "name", true, "starts a fresh session with another agent"},
	{commandCompact, "", false, "shortens the session's context"},
	{commandLink, "code", false, "continues this conversation in another app"},
	{commandHelp, "", false, "shows this list"},
}

// Commands returns the slash commands, for platforms that list them.
func Commands() []Command { return slices.Clone(commands) }

// help returns the list of commands as a message.
func help() string {
	lines := make([]string, len(commands))
	for i, c := range commands {
		lines[i] = "/" + c.Name
		if c.Argument != "" && c.Required {
			lines[i] += " " + strings.ToUpper(c.Argument)
		}
		lines[i] += " " + c.About
	}
	return strings.Join(lines, "\n")
}
