package discord

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// interactionPrefix begins the ids of messages that stand for interactions.
	interactionPrefix = "interaction/"
	// confirmLimit is how long the platform waits for the first answer to an interaction, and confirmAgain the time between two
	// tries. The documentation's limit; a token that wasn't used by then is invalid.
	confirmLimit = 3 * time.Second
	confirmAgain = 300 * time.Millisecond
	// replyLimit is how long a command shows that the bot is thinking. Without a reply by then, that is removed.
	replyLimit = time.Minute
)

// Kinds of first answers to an interaction.
const (
	// The numbers are the documentation's interaction callback types.
	answerLater  = 5 // the reply follows; until then the bot is thinking
	confirmPress = 6 // nothing changes
)

// interaction is a slash command that waits for its reply. The token permits replies without the bot's token, so it must not appear
// in errors or logs.
type interaction struct {
	id, token, application string

	confirmed chan struct{} // closed when it was confirmed, or can't be
	isFailed  bool          // it can't be confirmed; valid after confirmed was closed
	replied   chan struct{} // closed when it has its reply, or gets it as a normal message
}

// interactions are the slash commands that wait for their replies. They don't survive the process; a reply is then a normal message.
type interactions struct {
	mu   sync.Mutex
	byID map[string]*interaction // by the id of the message that stands for it
}

// add makes an interaction known, so that a reply can find it. The caller has to finish it if the message can't be stored.
func (s *interactions) add(e *interactionEvent) *interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &interaction{id: e.ID, token: e.Token, application: e.Application, confirmed: make(chan struct{}), replied: make(chan struct{})}
	s.byID[interactionPrefix+e.ID] = i
	return i
}

// find returns the interaction that a message stands for, or nil.
func (s *interactions) find(messageID string) *interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[messageID]
}

// finish forgets an interaction. It returns false if it was forgotten before.
func (s *interactions) finish(i *interaction) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[interactionPrefix+i.id] != i {
		return false
	}
	delete(s.byID, interactionPrefix+i.id)
	close(i.replied)
	return true
}

// original returns the endpoint of the first answer to an interaction. The token comes first in the arguments, because it is the
// major parameter of the limit.
func (i *interaction) original(method string) endpoint {
	return at(method, "/webhooks/%[2]s/%[1]s/messages/@original", i.token, i.application)
}

// confirm gives an interaction its first answer, which has to arrive within confirmLimit. It reports whether it did. A failure in
// between is repeated quickly, because the person otherwise sees that the application didn't respond.
func (c *bot) confirm(ctx context.Context, e *interactionEvent, kind int) bool {
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	to := at(http.MethodPost, "/interactions/%[2]s/%[1]s/callback", e.Token, e.ID)
	for {
		err := c.client.call(ctx, to, map[string]int{"type": kind}, nil)
		switch {
		case err == nil, hasCode(err, codeAcknowledged): // an earlier request had no answer
			return true
		case !errors.Is(err, live.ErrUnknown) && !errors.Is(err, live.ErrUnsent), retry.Sleep(ctx, confirmAgain) != nil:
			c.log.Warn("an interaction could not be confirmed in time", "error", err)
			return false
		}
	}
}

// serve confirms a slash command, and ends its animation if it gets no reply. Not every command has a reply: a reaction of the
// pipeline, or an error, may come as another message. The animation would stay for 15 minutes then.
func (c *bot) serve(ctx context.Context, e *interactionEvent, i *interaction) {
	isConfirmed := c.confirm(ctx, e, answerLater)
	i.isFailed = !isConfirmed
	close(i.confirmed)
	if !isConfirmed {
		return
	}
	limit := time.NewTimer(replyLimit)
	defer limit.Stop()
	select {
	case <-i.replied:
	case <-ctx.Done(): // the next process replies with a normal message; the animation ends by itself
	case <-limit.C:
		if !c.interactions.finish(i) {
			return
		}
		if err := c.client.call(ctx, i.original(http.MethodDelete), nil, nil); err != nil && ctx.Err() == nil {
			c.log.Debug("the animation of a slash command could not be ended", "error", err)
		}
	}
}

// answerInteraction replies to a slash command, by an edit of what shows that the bot is thinking. A repetition has the same effect. If
// that can't be edited, the reply is a normal message. It waits for the confirmation first, because the animation that it edits
// doesn't exist before.
func (t *chat) answerInteraction(ctx context.Context, i *interaction, p live.Post) (string, error) {
	select {
	case <-i.confirmed:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	var result message
	err := live.ErrRepeat
	if !i.isFailed {
		err = t.c.client.call(ctx, i.original(http.MethodPatch), content(p), &result)
	}
	if hasCode(err, codeUnknownMessage, codeUnknownWebhook, codeUnknownInteraction, codeWebhookToken) {
		err = live.ErrRepeat
	}
	if err == nil || errors.Is(err, live.ErrRepeat) {
		t.c.interactions.finish(i)
	}
	return result.ID, t.explain(err)
}
