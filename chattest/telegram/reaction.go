package telegram

// reactionEmoji are some of the emoji that reactions can have; the API knows about 70.
var reactionEmoji = map[string]bool{"👍": true, "👎": true, "❤": true, "🔥": true, "🎉": true, "🤔": true, "👀": true, "😢": true, "👌": true, "🤝": true, "✍": true}

// setMessageReaction sets the bot's reaction to a message; an empty list removes it.
func (c *call) setMessageReaction(o *chat) (any, *failure) {
	m := o.byID[c.int("message_id")]
	if m == nil || m.Deleted {
		return nil, badRequest("message to react not found")
	}
	var list []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if err := c.object("reaction", &list); err != nil || len(list) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	m.Reaction = ""
	if len(list) == 1 {
		if list[0].Type != "emoji" || !reactionEmoji[list[0].Emoji] {
			return nil, badRequest("REACTION_INVALID")
		}
		m.Reaction = list[0].Emoji
	}
	return true, nil
}
