package wecom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// streamLife is how long after a person's message its stream is updated. The platform allows about 6 minutes.
const streamLife = 5*time.Minute + 30*time.Second

// noText is what a stream without a text shows. The platform refuses an empty one.
const noText = "⏹"

// stream is the message that answers a message of a person.
type stream struct {
	link    *link
	request string    // the request id of the person's message
	askedAt time.Time // when the person wrote
	text    string    // that should be seen
	frozen  string    // the text with which the stream was finished before the answer was complete
	// isBegun is set when an update was sent, and isFinished when the stream can't be updated any more.
	isBegun, isFinished bool
	// isFinishing is set when the answer is about to be sent. Nothing else is shown then. isUnsure is set when it was possibly sent.
	isFinishing, isUnsure bool
}

// newStream returns the stream that answers a message. A message has one, and its first frame begins the time that it may take.
func (c *bot) newStream(origin callback) *stream {
	return &stream{link: &c.link, request: origin.request, askedAt: origin.at}
}

// id returns the id of the stream. It depends on the person's message alone, so that a delivery after a restart continues the stream.
func (s *stream) id() string {
	sum := sha256.Sum256([]byte(s.request))
	return hex.EncodeToString(sum[:12])
}

// isExpired reports that the stream has to be finished. The answer may still be repeated after that, until the platform refuses it.
func (s *stream) isExpired() bool { return time.Since(s.askedAt) >= streamLife }

// canAnswer reports whether the stream can become the answer.
func (s *stream) canAnswer() bool { return !s.isFinished && (s.isFinishing || !s.isExpired()) }

// isOpen reports whether people see an animation of an answer that doesn't come.
func (s *stream) isOpen() bool { return s.isBegun && !s.isFinished && !s.isFinishing }

// update shows the text, and the tool calls below it if both fit.
func (s *stream) update(ctx context.Context, card string) error {
	content := s.text
	if withCard := strings.TrimSpace(content + "\n\n" + card); len(withCard) <= maxText {
		content = withCard
	}
	if content == "" {
		return nil
	}
	s.isBegun = true
	return s.respond(ctx, content, false)
}

// finish shows a text for good.
func (s *stream) finish(ctx context.Context, text string) error {
	if strings.TrimSpace(text) == "" {
		text = noText
	}
	err := s.respond(ctx, text, true)
	if err == nil || isExpired(err) {
		s.isFinished = true
	}
	return err
}

// respond sends a frame of the stream.
func (s *stream) respond(ctx context.Context, content string, isLast bool) error {
	body := map[string]any{"msgtype": "stream", "stream": map[string]any{"id": s.id(), "finish": isLast, "content": content}}
	return s.link.request(ctx, commandRespond, s.request, body, nil)
}

// remainder returns what follows the frozen text, if that ends with a block of the answer, and otherwise all: a part of a block could
// not be read alone.
func (s *stream) remainder(text string) string {
	after, ok := strings.CutPrefix(text, s.frozen)
	if ok && s.frozen != "" && strings.HasPrefix(after, "\n\n") && strings.Count(s.frozen, "```")%2 == 0 {
		return strings.TrimLeft(after, "\n")
	}
	return text
}
