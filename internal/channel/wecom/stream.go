package wecom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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
	// isBegun is set when an update was sent, and isFinished when the stream can't be updated any more. Then last is what it shows.
	isBegun, isFinished bool
	last                string
}

func (c *bot) newStream(origin callback) *stream {
	return &stream{link: &c.link, request: origin.request, askedAt: origin.at}
}

// messageID returns the id of the text in the stream, with what is needed to continue the stream after a restart.
func (s *stream) messageID() string {
	return idStream + "/" + s.request + "/" + strconv.FormatInt(s.askedAt.Unix(), 10)
}

// id returns the id of the stream. It depends on the person's message alone, so that a delivery after a restart continues the stream.
func (s *stream) id() string {
	sum := sha256.Sum256([]byte(s.request))
	return hex.EncodeToString(sum[:12])
}

func (s *stream) isExpired() bool { return time.Since(s.askedAt) >= streamLife }

// update shows the text, and the tool calls below it if both fit. At the end of the stream's time it is finished with the text.
func (s *stream) update(ctx context.Context, card string) error {
	if s.isExpired() {
		return s.finish(ctx, s.text)
	}
	content := s.text
	if withCard := strings.TrimSpace(content + "\n\n" + card); len(withCard) <= maxText {
		content = withCard
	}
	s.isBegun = true
	return s.respond(ctx, content, false)
}

// finish shows a text for good.
func (s *stream) finish(ctx context.Context, text string) error {
	content := text
	if strings.TrimSpace(content) == "" {
		content = noText
	}
	err := s.respond(ctx, content, true)
	if err == nil || isExpired(err) {
		s.isFinished = true
	}
	if err == nil {
		s.last = text
	}
	return err
}

// freeze finishes a stream whose time is over with the text that it shows.
func (s *stream) freeze(ctx context.Context) error {
	if s.isFinished || !s.isBegun || !s.isExpired() {
		return nil
	}
	if err := s.finish(ctx, s.text); err != nil && !isExpired(err) {
		return err
	}
	return nil
}

// respond sends a frame of the stream.
func (s *stream) respond(ctx context.Context, content string, isLast bool) error {
	body := map[string]any{"msgtype": "stream", "stream": map[string]any{"id": s.id(), "finish": isLast, "content": content}}
	return s.link.request(ctx, commandRespond, s.request, body, nil)
}

// remainder returns what follows the text that the finished stream shows, if that ends with a block of the text, and otherwise all:
// a part of a block could not be read alone.
func (s *stream) remainder(text string) string {
	if after, ok := strings.CutPrefix(text, s.last); ok && s.last != "" && strings.HasPrefix(after, "\n\n") && strings.Count(s.last, "```")%2 == 0 {
		return strings.TrimLeft(after, "\n")
	}
	return text
}
