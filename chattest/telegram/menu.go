package telegram

import "regexp"

// Command is an entry of the bot's menu.
type Command struct {
	// Command has no slash.
	Command string `json:"command"`
	// Description is shown next to the command.
	Description string `json:"description"`
}

// commandForm is the form of a command's name.
var commandForm = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

// setMyCommands replaces the menu.
func (c *call) setMyCommands() (any, *failure) {
	var list []Command
	if err := c.object("commands", &list); err != nil || len(list) > 100 {
		return nil, badRequest("can't parse commands")
	}
	for _, o := range list {
		if !commandForm.MatchString(o.Command) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := len([]rune(o.Description)); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	c.s.menu = list
	return true, nil
}

// Menu returns the commands that the bot has set.
func (s *Server) Menu() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.menu
}
