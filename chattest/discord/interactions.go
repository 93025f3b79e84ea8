package discord

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// acknowledgeLimit is the time in which an interaction has to be answered, and tokenLife how long its token can be used.
	acknowledgeLimit = 3 * time.Second
	tokenLife        = 15 * time.Minute
	// maxCommands is the number of commands of an application, and maxCreated how many may be created in a day. A replacement creates
	// those whose names are new.
	maxCommands = 100
	maxCreated  = 200
)

// Command is a slash command that the bot has registered.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Options are the arguments, in the order in which a person is asked for them.
	Options []CommandOption `json:"options"`
	// Contexts are where the command can be used, and IntegrationTypes how the bot was added.
	Contexts         []int `json:"contexts"`
	IntegrationTypes []int `json:"integration_types"`

	id string
}

// object returns a command as the API does.
func (o Command) object() map[string]any {
	options := []any{}
	for _, p := range o.Options {
		option := map[string]any{"type": p.Type, "name": p.Name, "description": p.Description}
		if p.Required { // the API leaves a default out
			option["required"] = true
		}
		options = append(options, option)
	}
	return map[string]any{
		"id": o.id, "application_id": applicationID, "version": o.id, "name": o.Name, "description": o.Description, "type": 1, "options": options,
		"contexts": o.Contexts, "integration_types": o.IntegrationTypes, "nsfw": false, "default_member_permissions": nil,
	}
}

// CommandOption is an argument of a command.
type CommandOption struct {
	// Type is 3 for a text.
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// interaction is a command or a pressed button.
type interaction struct {
	// The token permits the routes of the interaction without the token of the bot.
	id, token, channel string
	at                 time.Time
	isAnswered         bool
	source             *Message // the message with the button, or nil
	original           *Message // the first answer, or nil
}

// commandName is the form of the name of a command.
var commandName = regexp.MustCompile(`^[-_'a-z0-9]{1,32}$`)

// ownApplication refuses a request for the commands of another application.
func (c *call) ownApplication() *refusal {
	if c.value("application") != applicationID {
		return refuse(http.StatusForbidden, 20012, "You are not authorized to perform this action on this application")
	}
	return nil
}

// getCommands returns all commands.
func (c *call) getCommands() (any, *refusal) {
	if failed := c.ownApplication(); failed != nil {
		return nil, failed
	}
	return commandObjects(c.s.commands), nil
}

// commandObjects returns commands in the order of the API, which isn't that of the request.
func commandObjects(commands []Command) []any {
	objects := []any{}
	for _, o := range slices.SortedFunc(slices.Values(commands), func(a, b Command) int { return strings.Compare(a.Name, b.Name) }) {
		objects = append(objects, o.object())
	}
	return objects
}

// putCommands replaces all commands. One with the name of an earlier one keeps its id.
func (c *call) putCommands() (any, *refusal) {
	if failed := c.ownApplication(); failed != nil {
		return nil, failed
	}
	var list []Command
	if err := json.Unmarshal(c.raw, &list); err != nil {
		return nil, refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
	}
	names := map[string]bool{}
	for _, o := range list {
		if failed := o.check(names); failed != nil {
			return nil, failed
		}
		names[o.Name] = true
	}
	if len(list) > maxCommands {
		return nil, refuse(http.StatusBadRequest, 30032, "Maximum number of application commands reached (100)")
	}
	ids := map[string]string{}
	for _, o := range c.s.commands {
		ids[o.Name] = o.id
	}
	for i := range list {
		if list[i].id = ids[list[i].Name]; list[i].id != "" {
			continue
		}
		if list[i].id = c.s.nextID(); !c.s.creations.take(limit{maxCreated, 24 * time.Hour}, c.at) {
			return nil, refuse(http.StatusBadRequest, 30034, "Max number of daily application command creates has been reached (200)")
		}
	}
	c.s.commands = list
	return commandObjects(list), nil
}

// check returns what is wrong with a command. The names are those of the commands before it.
func (o Command) check(names map[string]bool) *refusal {
	isLong := func(text string) bool { return text == "" || len([]rune(text)) > 100 }
	switch {
	case !commandName.MatchString(o.Name):
		return invalid("name", "STRING_TYPE_REGEX", "String value did not match validation regex.")
	case names[o.Name]:
		return invalid("name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
	case isLong(o.Description):
		return invalid("description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	for _, p := range o.Options {
		if !commandName.MatchString(p.Name) || isLong(p.Description) || p.Type < 1 || p.Type > 11 {
			return invalid("options.0", "BASE_TYPE_BAD_LENGTH", "The option is invalid.")
		}
	}
	return nil
}

// callback answers an interaction for the first time.
func (c *call) callback() (any, *refusal) {
	i := c.s.interactions[c.value("interaction")]
	switch {
	case i == nil || i.token != c.value("token") || time.Since(i.at) > acknowledgeLimit:
		return nil, refuse(http.StatusNotFound, 10062, "Unknown interaction")
	case i.isAnswered:
		return nil, refuse(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
	}
	data, _ := c.body["data"].(map[string]any)
	kind := c.number("type")
	c.body = data
	c.raw, _ = json.Marshal(data) // it was decoded from JSON
	const (
		answerMessage, answerLater  = 4, 5
		confirmPress, changeMessage = 6, 7
	)
	m := &Message{Channel: i.channel, Author: botID, Name: c.s.opt.Username, Bot: true}
	switch {
	case kind == answerMessage:
		d, failed := c.draft(nil)
		if failed != nil {
			return nil, failed
		}
		m.apply(d)
		i.original = c.s.add(m)
	case kind == answerLater:
		m.apply(draft{flags: c.number("flags")&flagEphemeral | flagLoading})
		i.original = c.s.add(m)
	case kind == confirmPress && i.source != nil:
		i.original = i.source
	case kind == changeMessage && i.source != nil:
		if _, failed := c.edit(i.source); failed != nil {
			return nil, failed
		}
		i.original = i.source
	default:
		return nil, invalid("type", "BASE_TYPE_CHOICES", "The type is not allowed for this interaction.")
	}
	i.isAnswered = true
	return errNone, nil
}

// answeredInteraction returns the answered interaction of the path.
func (c *call) answeredInteraction() (*interaction, *refusal) {
	for _, i := range c.s.interactions {
		if i.token != c.value("token") || c.value("application") != applicationID || time.Since(i.at) > tokenLife {
			continue
		}
		if !i.isAnswered || i.original == nil || i.original.Deleted {
			return nil, refuse(http.StatusNotFound, 10008, "Unknown Message")
		}
		return i, nil
	}
	return nil, refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
}

// followUp sends a further message about an interaction.
func (c *call) followUp() (any, *refusal) {
	i, failed := c.answeredInteraction()
	if failed != nil {
		return nil, failed
	}
	d, failed := c.draft(nil)
	if failed != nil {
		return nil, failed
	}
	m := &Message{Channel: i.channel, Author: botID, Name: c.s.opt.Username, Bot: true}
	m.apply(d)
	return c.s.object(c.s.add(m), true), nil
}

// editOriginal edits the first answer to an interaction. If that was an animation, it ends.
func (c *call) editOriginal() (any, *refusal) {
	i, failed := c.answeredInteraction()
	if failed != nil {
		return nil, failed
	}
	isLoading := i.original.Loading
	i.original.Flags &^= flagLoading
	answer, failed := c.edit(i.original)
	if failed != nil && isLoading {
		i.original.Flags |= flagLoading
	}
	return answer, failed
}

// getOriginal returns the first answer to an interaction.
func (c *call) getOriginal() (any, *refusal) {
	i, failed := c.answeredInteraction()
	if failed != nil {
		return nil, failed
	}
	return c.s.object(i.original, true), nil
}

// deleteOriginal deletes the first answer to an interaction.
func (c *call) deleteOriginal() (any, *refusal) {
	i, failed := c.answeredInteraction()
	if failed != nil {
		return nil, failed
	}
	i.original.Deleted = true
	return errNone, nil
}
