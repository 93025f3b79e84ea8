package slack

import (
	"slices"
	"time"
)

const (
	// maxMarkdown is the limit of a markdown_text and of one append, and maxStream that of a stream in total, in characters.
	maxMarkdown = 12000
	maxStream   = 12000
	// maxText is where the text of a new message is cut off, and maxUpdate the limit of the text of an update, in characters.
	maxText   = 40000
	maxUpdate = 4000
	// maxMetadata is the limit of the JSON of metadata, in bytes.
	maxMetadata = 16000
	// streamLife is how long a stream can be appended to.
	streamLife = 5 * time.Minute
	// statusLife is how long a status is shown.
	statusLife = 2 * time.Minute
)

// tiers are how many requests of a method are allowed in a minute, for the workspace.
var tiers = map[string]int{
	"chat.startStream": 20, "chat.stopStream": 20, "chat.appendStream": 100, "chat.update": 50, "chat.delete": 50,
	"conversations.history": 50, "conversations.replies": 50, "users.info": 100, "apps.connections.open": 20,
}

// limit refuses a request that is above the limit of its method. mu must be locked.
func (c *call) limit() *answer {
	n, ok := tiers[c.method]
	if !c.s.opt.Tiers || !ok {
		return nil
	}
	recent := slices.DeleteFunc(c.s.recent[c.method], func(at time.Time) bool { return c.at.Sub(at) >= time.Minute })
	if len(recent) >= n {
		c.s.recent[c.method] = recent
		return c.tooEarly(recent[0].Add(time.Minute))
	}
	c.s.recent[c.method] = append(recent, c.at)
	return nil
}

// pace refuses a message that is too early in its channel. mu must be locked.
func (c *call) pace() *answer {
	if c.at.Before(c.o.next) {
		return c.tooEarly(c.o.next)
	}
	c.o.next = c.at.Add(c.s.opt.Gap)
	return nil
}

// tooEarly refuses a request, and all like it before a time. mu must be locked.
func (c *call) tooEarly(end time.Time) *answer {
	seconds := int(end.Sub(c.at)/time.Second) + 1
	if c.channel != "" {
		c.s.conversation(c.channel).penalty[c.method] = c.at.Add(time.Duration(seconds) * time.Second)
	}
	return limited(seconds)
}
