package discord

import (
	"cmp"
	"time"
)

// user is a person or a bot. The global name is what people choose, and is empty for bots and old accounts.
type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	IsBot      bool   `json:"bot"`
}

// member is a person in a server. User is missing in messages.
type member struct {
	User *user  `json:"user"`
	Nick string `json:"nick"`
}

// displayName returns the name that people see: the one in the server, or else the one everywhere.
func displayName(u *user, m *member) string {
	if m != nil && m.Nick != "" {
		return m.Nick
	}
	return cmp.Or(u.GlobalName, u.Username)
}

// message is a message of the API. The types of those that people write are typeDefault and typeReply. Fields that the bot doesn't
// use are left out. An unknown type is a message of the platform, such as "has joined".
type message struct {
	// Ids are numbers of 64 bits in texts, because JavaScript would lose their last digits. They contain the time.
	ID      string `json:"id"`
	Channel string `json:"channel_id"`
	// Guild is the server, and is empty for direct messages.
	Guild string `json:"guild_id"`
	Type  int    `json:"type"`
	// Author is missing in some events of the platform. The bot ignores those.
	Author *user   `json:"author"`
	Member *member `json:"member"`
	// Content has mentions as <@ID>. It is empty without the intent for message content, unless the message is for the bot.
	Content   string    `json:"content"`
	Timestamp time.Time `json:"timestamp"`
	// Flags are bits; see flagComponents.
	Flags int `json:"flags"`
	// Mentions are the users in the content, so that the agent can see names.
	Mentions    []user       `json:"mentions"`
	Attachments []attachment `json:"attachments"`
	// Reply is the message that this one replies to, or nil if that was deleted. Reference has its id, and is nil for other messages.
	Reply     *message   `json:"referenced_message"`
	Reference *reference `json:"message_reference"`
	// Webhook is set for messages of programs that write without a bot.
	Webhook string `json:"webhook_id"`
}

const (
	typeDefault = 0
	typeReply   = 19
)

// attachment is a file in a message. Its address expires.
type attachment struct {
	ID       string `json:"id"`
	Filename string `json:"filename"`
	Type     string `json:"content_type"`
	Size     int64  `json:"size"`
	URL      string `json:"url"`
}

// interactionEvent is a slash command or a pressed button. The token is a secret for 15 minutes.
type interactionEvent struct {
	ID          string  `json:"id"`
	Application string  `json:"application_id"`
	Type        int     `json:"type"`
	Token       string  `json:"token"`
	Guild       string  `json:"guild_id"`
	Channel     string  `json:"channel_id"`
	User        *user   `json:"user"`   // in direct chats
	Member      *member `json:"member"` // elsewhere
	Data        struct {
		Name     string `json:"name"`
		CustomID string `json:"custom_id"`
		Options  []struct {
			Value any `json:"value"`
		} `json:"options"`
	} `json:"data"`
}
