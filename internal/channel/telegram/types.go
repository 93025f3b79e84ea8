// The objects of the Bot API, with the fields that are used.

package telegram

import (
	"strconv"
	"strings"
)

// user is a person or a bot.
type user struct {
	// ID is that of the private chat with the person as well.
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	// LastName is optional, and Username too. Bots always have a Username.
	LastName string `json:"last_name"`
	Username string `json:"username"`
}

// name returns the name that people see, which is not unique and can change.
func (u *user) name() string {
	if name := strings.TrimSpace(u.FirstName + " " + u.LastName); name != "" {
		return name
	}
	return u.Username
}

// chatObject is the chat of a message. The ids of groups are negative.
type chatObject struct {
	ID   int64  `json:"id"`
	Type string `json:"type"` // private, group, supergroup or channel
}

// message is a message of a person, or the result of sending one.
type message struct {
	// ID is unique in its chat. In private chats the bot's messages to other people use up numbers as well.
	ID      int64 `json:"message_id"`
	Thread  int64 `json:"message_thread_id"`
	IsTopic bool  `json:"is_topic_message"` // otherwise Thread is the thread of a reply, which is not a topic
	// From is missing in messages of channels and of anonymous administrators.
	From *user      `json:"from"`
	Chat chatObject `json:"chat"`
	Date int64      `json:"date"` // seconds
	// Text is plain. Its formatting is in entities, which the agent doesn't need. The text of a message with files is Caption.
	Text     string       `json:"text"`
	Caption  string       `json:"caption"`
	Photo    []fileObject `json:"photo"` // the same picture in several sizes, the largest last
	Document *fileObject  `json:"document"`
	Voice    *fileObject  `json:"voice"`
	Audio    *fileObject  `json:"audio"`
	Video    *fileObject  `json:"video"`
	Album    string       `json:"media_group_id"` // of messages that were sent as one
	// Reply is the message that this one replies to. It has no reply in turn.
	Reply *message `json:"reply_to_message"`
}

// update is one thing that has happened. Exactly one of the fields besides the id is set.
type update struct {
	// ID ascends. A poll with a higher offset confirms the update.
	ID      int64    `json:"update_id"`
	Message *message `json:"message"`
	// Press is a pressed button.
	Press *struct {
		ID      string   `json:"id"`
		From    *user    `json:"from"`
		Message *message `json:"message"` // with the button
		Data    string   `json:"data"`
	} `json:"callback_query"`
	// Stop is the stop button of a draft.
	Stop *struct {
		Chat chatObject `json:"chat"`
		// Thread is the topic of the draft, or 0.
		Thread int64 `json:"message_thread_id"`
		Draft  int64 `json:"draft_id"`
	} `json:"stopped_message_generation"`
}

// place is a chat, or a topic of one. The thread is 0 outside of topics, and 1 for the general topic.
type place struct {
	chat, thread int64
}

// id returns the place as a chat id of the pipeline: CHAT or CHAT/TOPIC.
func (p place) id() string {
	id := strconv.FormatInt(p.chat, 10)
	if p.thread != 0 {
		id += "/" + strconv.FormatInt(p.thread, 10)
	}
	return id
}

// parsePlace reads what id returned. An id that it can't read is that of another platform.
func parsePlace(id string) (p place, err error) {
	chat, thread, hasThread := strings.Cut(id, "/")
	if p.chat, err = strconv.ParseInt(chat, 10, 64); err == nil && hasThread {
		p.thread, err = strconv.ParseInt(thread, 10, 64)
	}
	return p, err
}

// isPrivate reports whether the chat is with one person. Groups have negative ids.
func (p place) isPrivate() bool { return p.chat > 0 }

// messageRef is the id of a received message in the pipeline. Numbers of messages are unique in their chat only.
func messageRef(chat, id int64) string {
	return strconv.FormatInt(chat, 10) + "/" + strconv.FormatInt(id, 10)
}

// messageNumber returns the number in a message's id, or 0 if the id is not of a message.
func messageNumber(ref string) int64 {
	_, number, _ := strings.Cut(ref, "/")
	n, _ := strconv.ParseInt(number, 10, 64) // 0 for every other text
	return n
}
