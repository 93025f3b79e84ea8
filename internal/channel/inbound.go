package channel

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// The texts that people in chats get from the gateway itself.
const (
	textBusy        = "I am busy with your earlier messages. Please send this one again later."
	textFailed      = "Your message could not be handled because of an error. Please send it again."
	textStranger    = "I don't know you yet. Ask the operator to run:\n\n```\nleat channels allow %s\n```\n\nThe code is valid for an hour."
	textNew         = "✅ Started a fresh session."
	textStopped     = "⏹ Stopped."
	textAnswered    = "This question was answered already."
	textQuestion    = "The agent needs your permission."
	textTooLarge    = "The file is too large for me."
	textUnheard     = "I couldn't understand your voice message. Please try again, or write."
	textChoices     = "Answer with one of: %s."
	textIdle        = "Nothing is running."
	textNoCompact   = "This agent can't compact its session. Use /new to start a fresh one."
	textCompactBusy = "Please wait for the answer, or /stop it first."
	textNoSession   = "There is nothing to compact yet."
	textAgent       = "✅ Started a fresh session with %s."
	textAgentName   = "Which agent? Write its name after the command, such as /agent helper"
	textLink        = "To continue this conversation in a chat of another app, write there within ten minutes:\n\n```\n/link %s\n```"
	textLinked      = "✅ This chat continues your conversation, and knows you."
	textLinkSame    = "Write the code in a chat of another app."
	textLinkGroup   = "Chats can only be linked in private. Write to me directly."
	textLinkUnknown = "This code is unknown or has expired. Write /link in the other chat to get a new one."
	textEmpty       = "The agent ended without an answer."
	textIncomplete  = "⏹ Stopped before the end of the answer."
	textOutcome     = "⚠️ The turn ended as %s."
)

// handle handles one message. If ctx ends meanwhile, the message stays in the inbox, and the next process handles it; the steps
// have idempotency keys, so the repetition changes nothing.
func (c *connector) handle(ctx context.Context, m *InboundMessage) {
	text, err := c.process(ctx, m)
	if ctx.Err() != nil {
		return
	}
	if refusal, ok := errors.AsType[*gateway.Rejection](err); ok {
		if refusal.Reason == gateway.ReasonDraining {
			return // the next process handles it
		}
		text = refusal.Message
	} else if err != nil {
		c.log.Error("message of a chat could not be handled", "error", err)
		text = textFailed
	}
	if text != "" && c.pipeline.bus.PublishOutbound(ctx, m.reply(text)) != nil {
		return
	}
	if err := c.inbox.finish(ctx, m); err != nil && ctx.Err() == nil {
		c.log.Error("handled message could not be marked; it will be handled again after a restart", "error", err)
	}
}

// process does what a message asks for and returns the reply. The answer of an agent is not a reply: it is delivered as a turn.
func (c *connector) process(ctx context.Context, m *InboundMessage) (reply string, err error) {
	if m.Hints.Command == commandLink && m.Hints.Args != "" {
		return c.acceptLink(ctx, m)
	}
	author, ok, err := c.access.admits(ctx, c.runtime().options.Allow, m.SenderID)
	if err != nil {
		return "", err
	}
	if !ok {
		request, isNew, err := c.access.pair(ctx, m.SenderID, m.SenderName)
		if err != nil || request.Code == "" || m.Hints.Group && !isNew {
			return "", err
		}
		if isNew {
			c.log.Info("an unknown person wants to talk; to admit them: leat channels allow CODE", "name", m.SenderName, "code", request.Code)
		}
		return fmt.Sprintf(textStranger, request.Code), nil
	}
	if m.Hints.Command != "" {
		return c.execute(ctx, m, author)
	}
	if isAnswer, err := c.answerText(ctx, c.chatNamed(m.ChatID), m); isAnswer || err != nil {
		return "", err
	}
	return "", c.ask(ctx, m, author)
}

// ask sends a message to the chat's agent. A chat without a conversation gets one. If the conversation was deleted, a new one is
// begun.
func (c *connector) ask(ctx context.Context, m *InboundMessage, author string) error {
	t, id := c.chatNamed(m.ChatID), m.messageID()
	c.mu.Lock()
	t.replies[id] = m.ID
	c.mu.Unlock()
	for isRetry := false; ; isRetry = true {
		b := c.current(t)
		if b == nil {
			var err error
			if b, err = c.bind(ctx, t, "chat/"+m.ID, c.runtime().options.Agent); err != nil {
				return err
			}
		}
		parts, err := c.parts(ctx, b, m)
		if err == nil {
			_, err = c.pipeline.gateway.Do(ctx, c.principalOf(b), b.Conversation, gateway.Command{Type: gateway.CommandSend, Key: m.ID, Message: &gateway.CommandMessage{
				ID: id, Role: event.User, Parts: parts, Source: c.name, Author: &event.Author{ID: author, Name: m.SenderName},
			}})
		}
		if !isDeleted(err) || isRetry {
			return err
		}
		c.forget(t, b)
	}
}

// execute executes a slash command.
func (c *connector) execute(ctx context.Context, m *InboundMessage, author string) (reply string, err error) {
	t := c.chatNamed(m.ChatID)
	switch m.Hints.Command {
	case commandNew:
		return textNew, c.rotate(ctx, t, m, c.runtime().options.Agent)
	case commandAgent:
		if m.Hints.Args == "" {
			return textAgentName, nil
		}
		return fmt.Sprintf(textAgent, m.Hints.Args), c.rotate(ctx, t, m, m.Hints.Args)
	case commandStop:
		return c.stopTurn(ctx, c.current(t), m)
	case commandLink:
		return c.offerLink(ctx, m, author)
	case commandAnswer:
		return c.answerButton(ctx, t, m)
	case commandCompact:
		return c.compact(ctx, t, m, author)
	}
	return help(), nil
}

// rotate begins a new conversation for a chat. Then the running turn of the old one is stopped, so that its answer doesn't appear
// among those of the new one.
func (c *connector) rotate(ctx context.Context, t *chat, m *InboundMessage, agent string) error {
	old := c.current(t)
	b, err := c.bind(ctx, t, "chat/"+m.ID, agent)
	if err != nil || old == nil || old == b {
		return err
	}
	_, err = c.stopTurn(ctx, old, m)
	return err
}

// stopTurn stops the running turn of a conversation. Queued turns are not stopped.
func (c *connector) stopTurn(ctx context.Context, b *binding, m *InboundMessage) (reply string, err error) {
	if b == nil {
		return textIdle, nil
	}
	p, turn := c.principalOf(b), ""
	err = c.pipeline.gateway.ViewTranscript(ctx, p, b.Conversation, func(log *transcript.Transcript) bool {
		for _, o := range unfinished(log) {
			if o.State != transcript.TurnQueued && o.Independent() {
				turn = o.ID
				break
			}
		}
		return true
	})
	if err == nil && turn != "" {
		_, err = c.pipeline.gateway.Do(ctx, p, b.Conversation, gateway.Command{Type: gateway.CommandStop, Key: m.ID + "/stop", Turn: turn})
	}
	switch refusal, ok := errors.AsType[*gateway.Rejection](err); {
	case isDeleted(err), err == nil && turn == "":
		return textIdle, nil
	case ok && refusal.Reason == gateway.ReasonConflict: // the first handling of this message stopped another turn
	case err != nil:
		return "", err
	}
	return textStopped, nil
}

// text returns the text as the agent gets it. In groups it begins with the name of its author, because the agent sees the
// messages of several people in one conversation.
func (m *InboundMessage) text() string {
	if m.Hints.Group && m.SenderName != "" {
		return m.SenderName + ": " + m.Content
	}
	return m.Content
}

// reply returns a message that answers m.
func (m *InboundMessage) reply(text string) OutboundMessage {
	return OutboundMessage{Channel: m.Channel, ChatID: m.ChatID, Content: text, ReplyTo: m.ID, Key: m.ID + "/reply"}
}

// tryReply queues a reply if the chat's queue has space. Otherwise the chat can't take messages, and the reply
// is dropped.
func (b *MessageBus) tryReply(m *InboundMessage, text string) {
	_ = b.outbound.tryPublish(route(m.Channel, m.ChatID), m.reply(text))
}

// isDeleted reports whether an error means that the conversation no longer exists.
func isDeleted(err error) bool {
	return errors.Is(err, gateway.ErrNotFound) || errors.Is(err, feed.ErrDeleted)
}
