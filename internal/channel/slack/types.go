// The objects of the API, with the fields that are used.

package slack

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// account is the bot itself. Its bot id and user id are different, and messages of the bot may have either.
type account struct {
	// URL is the address of the workspace. Links to the bot begin with it.
	URL  string `json:"url"`
	Team string `json:"team_id"`
	User string `json:"user_id"`
	Bot  string `json:"bot_id"`
}

// message is a message of an event or of a channel's history.
type message struct {
	// Type is message, or app_mention for the second event about a message that mentions the bot.
	Type string `json:"type"`
	// Subtype is empty for a plain message of a person.
	Subtype string `json:"subtype"`
	Channel string `json:"channel"`
	// ChannelType is im for direct messages. The first letter of the id says the same, and is always there.
	ChannelType string `json:"channel_type"`
	// User is the author. Messages of programs may have a bot id only.
	User string `json:"user"`
	Bot  string `json:"bot_id"`
	// Text is escaped, and has links and mentions in angle brackets.
	Text string `json:"text"`
	// TS is the id of the message in its channel, and contains its time.
	TS string `json:"ts"`
	// Thread is the id of the first message of the thread. That message has its own id here once it has replies.
	Thread string       `json:"thread_ts"`
	Parent string       `json:"parent_user_id"` // the author of the first message of the thread
	Files  []fileObject `json:"files"`
	// Metadata is included in a history only if the request asks for it.
	Metadata *metadata `json:"metadata"`
}

// metadata is attached to each message, so that it can be found. Only apps with the scope for metadata can see it, so it doesn't
// disturb people.
type metadata struct {
	Type    string            `json:"event_type"`
	Payload map[string]string `json:"event_payload"`
}

// metadataType is the type of the metadata of Leat's messages.
const metadataType = "leat_message"

// keyed returns metadata with a key.
func keyed(key string) metadata {
	return metadata{Type: metadataType, Payload: map[string]string{"key": key}}
}

// key returns the key of a message, or "".
func (m *message) key() string {
	if m.Metadata == nil || m.Metadata.Type != metadataType {
		return ""
	}
	return m.Metadata.Payload["key"]
}

// callback is the body of a request of the Events API, and the payload of an envelope of the kind events_api. The challenge is set if
// Slack checks the address of the webhook.
type callback struct {
	Type      string  `json:"type"`
	Challenge string  `json:"challenge"`
	Event     message `json:"event"`
}

// press is a pressed button. The container names the message with the button and its thread.
type press struct {
	Type string `json:"type"`
	User struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		Message string `json:"message_ts"`
		Thread  string `json:"thread_ts"`
	} `json:"container"`
	Message struct {
		Thread string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		Type  string `json:"type"`
		Value string `json:"value"`
		TS    string `json:"action_ts"`
	} `json:"actions"`
}

// slash is a slash command. The trigger is unique for each use of the command.
type slash struct {
	Command string `json:"command"`
	Text    string `json:"text"`
	User    string `json:"user_id"`
	Name    string `json:"user_name"`
	Channel string `json:"channel_id"`
	Trigger string `json:"trigger_id"`
}

// place is a chat: direct messages, a channel, or a thread in one of them. A thread is a chat, so that the answers to two threads of
// a channel belong to different conversations.
type place struct {
	channel, thread string
}

// id returns the place as a chat id of the pipeline: CHANNEL or CHANNEL/THREAD.
func (p place) id() string {
	if p.thread == "" {
		return p.channel
	}
	return p.channel + "/" + p.thread
}

// parsePlace reads what id returned.
func parsePlace(id string) (place, error) {
	in, thread, hasThread := strings.Cut(id, "/")
	if in == "" || hasThread && timeOf(thread).IsZero() {
		return place{}, fmt.Errorf("slack: %q is not the id of a chat, which is CHANNEL or CHANNEL/THREAD: %w", id, channel.ErrUnreachable)
	}
	return place{in, thread}, nil
}

// isDirect reports whether the chat is with one person.
func (p place) isDirect() bool { return strings.HasPrefix(p.channel, "D") }

// reference is the id of a message in the pipeline. Slack's ids are unique in their channel only. The author is a part of it, because
// the answer to the message may have to name its reader.
func reference(channel, ts, user string) string {
	if user == "" {
		return channel + "/" + ts
	}
	return channel + "/" + ts + "/" + user
}

// parseReference returns the id of a message in its channel and its author, or empty texts for the id of something else.
func parseReference(ref string) (ts, user string) {
	parts := strings.Split(ref, "/")
	if len(parts) < 2 || timeOf(parts[1]).IsZero() {
		return "", ""
	}
	if len(parts) > 2 {
		user = parts[2]
	}
	return parts[1], user
}

// timeOf returns the time of a message's id, such as 1700000001.123456, or the zero time. It is parsed as two integers: a float64
// would lose the last digits.
func timeOf(ts string) time.Time {
	seconds, micros, ok := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || !ok {
		return time.Time{}
	}
	u, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(s, u*int64(time.Microsecond))
}
