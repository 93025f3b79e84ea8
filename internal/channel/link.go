package channel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// linkLife is how long a code is valid with which a person links another chat to theirs.
const linkLife = 10 * time.Minute

// linkCode says whose chat a code continues.
type linkCode struct {
	Channel string    `json:"channel"`
	Sender  string    `json:"sender"`
	Chat    string    `json:"chat"`
	Author  string    `json:"author"` // as which the person appears in conversations
	Expires time.Time `json:"expires"`
}

// offerLink returns a reply with a code that links another chat to this one. In a group everybody could use it.
func (c *connector) offerLink(ctx context.Context, m *InboundMessage, author string) (reply string, err error) {
	if m.Hints.Group {
		return textLinkGroup, nil
	}
	code := linkCode{Channel: c.name, Sender: m.SenderID, Chat: m.ChatID, Author: author, Expires: time.Now().Add(linkLife)}
	name := newCode()
	return fmt.Sprintf(textLink, name), c.pipeline.store.write(ctx, linkKey(name), code, code.Expires)
}

// acceptLink makes the sender of a message the person who got a code: admitted as they are, and the same author in
// conversations. The private chat continues their conversation.
func (c *connector) acceptLink(ctx context.Context, m *InboundMessage) (reply string, err error) {
	if m.Hints.Group {
		return textLinkGroup, nil
	}
	p, name := c.pipeline, strings.ToUpper(m.Hints.Args)
	var code linkCode
	exists, err := p.store.get(ctx, linkKey(name), &code)
	if err != nil {
		return "", err
	}
	from := p.connector(code.Channel)
	switch {
	case !exists || time.Now().After(code.Expires) || from == nil:
		return textLinkUnknown, nil
	case code.Channel == c.name && code.Chat == m.ChatID:
		return textLinkSame, nil
	}
	person := Person{Channel: c.name, Sender: m.SenderID, Name: m.SenderName, Since: time.Now(), Author: code.Author}
	if err := p.store.write(ctx, allowKey(c.name, m.SenderID), person, time.Time{}); err != nil {
		return "", err
	}
	t := from.chatNamed(code.Chat)
	b := from.current(t)
	if b == nil {
		if b, err = from.bind(ctx, t, "chat/link/"+name, from.runtime().options.Agent); err != nil {
			return "", err
		}
	}
	if err := p.Attach(ctx, c.name, m.ChatID, b.Conversation); err != nil && !errors.Is(err, ErrAttached) {
		return "", err
	}
	// The code last: if the gateway crashes before, the message is handled again and has the same effect.
	return textLinked, p.store.write(ctx, linkKey(name), nil, time.Time{})
}
