package channel

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// InboundMessage is a message of a person in a chat, or an event that stands for one, such as a pressed button.
type InboundMessage struct {
	// ID is the platform's id of the message, unique within the channel. The platform may deliver a message twice; the second one
	// is ignored.
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// ChatID is the platform's id of the chat. If the chat has topics or threads, each of them is a separate chat.
	ChatID string `json:"chat"`
	// SenderID is the platform's id of the person. It doesn't change when the person chooses another name.
	SenderID   string `json:"sender"`
	SenderName string `json:"name,omitempty"`
	// Content is the text, without the mention of the bot.
	Content   string       `json:"content,omitempty"`
	Media     []Media      `json:"media,omitempty"`
	Timestamp time.Time    `json:"time"`
	Hints     RoutingHints `json:"hints"`
}

// Media is a file that a person sent. Its bytes stay at the platform until a turn needs them.
type Media struct {
	// Ref is what the channel needs to fetch the file.
	Ref  string `json:"ref"`
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"` // media type
	Size int64  `json:"size,omitempty"` // bytes, or 0 if unknown
	// IsVoice means that the person has recorded it in the chat, as a message.
	IsVoice bool `json:"voice,omitempty"`
}

// RoutingHints say how a message has to be handled.
type RoutingHints struct {
	// ForceSync requires one reply instead of a stream. It is set for slash commands.
	ForceSync bool `json:"sync,omitempty"`
	// Command and Args are set for a slash command, such as "new" and "".
	Command string `json:"command,omitempty"`
	Args    string `json:"args,omitempty"`
	// Group is set if several people may write in the chat. Addressed is set if the message mentions the bot or replies to it.
	Group     bool `json:"group,omitempty"`
	Addressed bool `json:"addressed,omitempty"`
}

// OutboundMessage is a message to a chat that is not the stream of a turn: the reply to a command, or one that a program sends.
type OutboundMessage struct {
	Channel string
	ChatID  string
	// Content is Markdown. The channel renders it for its platform and splits it if it is too long.
	Content string
	// ReplyTo is the platform's id of the message that it answers, or empty.
	ReplyTo string
	// Key is the same if the message is sent again after a crash. Platforms with idempotency keys use it.
	Key string
}

// route is the key of a chat's lane.
func route(channel, chat string) string { return channel + ":" + chat }

// lane is the key of the lane in which the message is handled. A stop doesn't wait behind the messages whose turn it stops.
func (m *InboundMessage) lane() string {
	key := route(m.Channel, m.ChatID)
	if m.Hints.Command == commandStop {
		key += ":" + commandStop
	}
	return key
}

// messageID returns the id of the message in its conversation: a UUIDv7, as other messages have, but the same each time, because
// the message may be handled twice.
func (m *InboundMessage) messageID() string {
	sum := sha256.Sum256([]byte(m.Channel + "\x00" + m.ID))
	var id uuid.UUID
	copy(id[:], sum[:])
	binary.BigEndian.PutUint64(sum[:8], uint64(m.Timestamp.UnixMilli())<<16)
	copy(id[:6], sum[:6])
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	return id.String()
}
