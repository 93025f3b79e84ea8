// The keys under which channels store their data in the journal. Names of chats and people can be personal data, so keys contain
// hashes of them.

package channel

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

const (
	// Log is the id of the journal's log that owns the keys which belong to no conversation.
	Log = "$channels"
	// tenantPrefix is the prefix of the tenants of built-in channels. The rest is the channel's name.
	tenantPrefix = "$channel/"
	// keyPrefix is the prefix of all keys of channels.
	keyPrefix = "channels/"
	// seenFor is how long the id of a handled message is kept. Platforms repeat a delivery for a day at most.
	seenFor = 48 * time.Hour
)

// TenantOf returns the tenant of the people in the chats of a channel.
func TenantOf(channel string) string { return tenantPrefix + channel }

// hash shortens names to a fixed length that reveals nothing about them.
func hash(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// bindingPrefix begins the keys of the bindings of a channel's chats.
func bindingPrefix(channel string) string { return keyPrefix + channel + "/chat/" }

func bindingKey(channel, chat, conversation string) string {
	return bindingPrefix(channel) + hash(chat) + "/" + hash(conversation)
}

// inboxPrefix begins the keys of a channel's messages that were received. Ids of messages are hashed, because they may contain numbers of people.
func inboxPrefix(channel string) string { return keyPrefix + channel + "/in/" }

func inboxKey(channel, id string) string { return inboxPrefix(channel) + hash(id) }

// allowPrefix begins the keys of the people who were admitted to a channel.
func allowPrefix(channel string) string { return keyPrefix + channel + "/allow/" }

func allowKey(channel, sender string) string { return allowPrefix(channel) + hash(sender) }

// pairPrefix is the prefix of the pairing codes of all channels, because the operator names only the code.
const pairPrefix = keyPrefix + "pair/"

// linkKey returns the key of a code that links chats of one person.
func linkKey(code string) string { return keyPrefix + "link/" + code }

// pairKey returns the key of a person who waits to be admitted.
func pairKey(code string) string { return pairPrefix + code }
