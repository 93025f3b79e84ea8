package channel

import (
	"encoding/json"

	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Collection describes what channels store about people outside their conversations: who was admitted, who wants to be, and
// messages that wait to be handled.
func Collection() data.Collection {
	return data.Collection{Name: "channels", Prefix: keyPrefix, Of: isAbout, Private: true}
}

// isAbout reports whether a key holds data of a person. The subject is the id of the chat, which in private chats is that of the
// person, or the id of the sender.
func isAbout(kv journal.KeyValue, tenant, subject string) bool {
	var v struct {
		Channel, Sender string
		Message         *InboundMessage
	}
	if json.Unmarshal(kv.Value, &v) != nil {
		return false
	}
	if m := v.Message; m != nil {
		return TenantOf(m.Channel) == tenant && (m.SenderID == subject || m.ChatID == subject)
	}
	return v.Sender != "" && TenantOf(v.Channel) == tenant && v.Sender == subject
}
