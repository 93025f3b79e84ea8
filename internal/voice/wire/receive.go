// What a client sends: frames, audio, and what is recognised in it.

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/leat-dev/leat/internal/voice"
)

// maxKey is the length of the longest key of a message in bytes.
const maxKey = 64

// readFrames handles frames until the connection ends. Its reads have a context of their own, because one that is cancelled cuts the connection,
// and there would be no farewell.
func (c *connection) readFrames(ctx context.Context) {
	for {
		kind, b, err := c.socket.Read(c.reads)
		if err != nil || ctx.Err() != nil {
			return
		}
		if kind == websocket.MessageBinary {
			c.receiveAudio(b)
			continue
		}
		c.receive(b)
	}
}

// receive handles a text frame.
func (c *connection) receive(b []byte) {
	var f clientFrame
	if err := json.Unmarshal(b, &f); err != nil {
		c.session.Post(voice.Error(codeInvalid, "The frame is not valid JSON.", "Send frames as docs/protocol.md describes them."))
		return
	}
	switch f.Type {
	case "start":
		c.use()
		if c.canRecognize() {
			c.hasDropped = false
			c.microphone.Begin()
		}
	case "stop":
		c.use()
		if c.microphone != nil {
			c.microphone.End()
		}
	case "interrupt":
		c.use()
		played := int64(-1)
		if f.Played != nil {
			played = max(0, *f.Played)
		}
		c.interrupt(f.Generation, played)
	case "played":
		if h, ok := c.session.Played(f.Generation, f.Samples); ok {
			c.order(func(ctx context.Context) { c.mark(ctx, h) })
		}
	case "text":
		c.use()
		text := strings.TrimSpace(f.Text)
		if text == "" || len(f.Key) > maxKey {
			c.session.Post(voice.Error(codeInvalid, "The message is empty or its key is too long.", "Write a message."))
			return
		}
		c.say(f.Key, text)
	case "ping":
		c.session.Post(pongFrame{Type: "pong"})
	}
}

// receiveAudio handles a frame of the microphone.
func (c *connection) receiveAudio(pcm []byte) {
	if len(pcm)%2 != 0 {
		c.cancel(errOddLength)
		return
	}
	if len(pcm) == 0 || !c.canRecognize() {
		return
	}
	if err := c.microphone.Write(pcm); err != nil && !c.hasDropped {
		c.hasDropped = true
		c.session.Post(voice.Error(codeTooFast, "Audio was dropped, because the microphone sends faster than real time.", "Say it again."))
	}
}

// canRecognize reports whether there is a recogniser. Otherwise it lets the client know, once.
func (c *connection) canRecognize() bool {
	if c.microphone == nil && !c.hasNoted {
		c.hasNoted = true
		c.session.Post(voice.Error(codeNoRecognition, "Speech isn't recognised, because no recogniser is configured.",
			"Type your message. An operator can set voice.recognition.engine."))
	}
	return c.microphone != nil
}

// hearSpeech is called when the gateway's own detector finds that the person speaks. It interrupts what is heard, but not an agent that
// still thinks, because a cough must not end its turn.
func (c *connection) hearSpeech() {
	c.use()
	if c.session.IsSpeaking() {
		c.interrupt(0, -1)
	}
}

// receiveResult handles what was recognised.
func (c *connection) receiveResult(r voice.Result) {
	text := strings.TrimSpace(r.Text)
	switch {
	case r.Err != nil:
		c.log.Warn("speech not recognised", "error", r.Err)
		c.session.Post(voice.Error(codeRecognitionFailed, "Your speech couldn't be recognised.", "Say it again, or type it."))
	case !r.IsFinal:
		c.session.Post(transcriptFrame{Type: "transcript", Text: text})
	case text == "":
		c.session.Post(transcriptFrame{Type: "transcript", Final: true})
	default:
		c.use()
		key := newKey()
		c.session.Post(transcriptFrame{Type: "transcript", Text: text, Final: true, Key: key})
		c.say(key, text)
	}
}

// newKey returns a new idempotency key. Its time makes keys of one person sortable.
func newKey() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString() // the clock can't be read; any other key does as well
	}
	return id.String()
}

// interrupt ends the speech at once, and orders what follows from it.
func (c *connection) interrupt(generation, played int64) {
	i, ok := c.session.Interrupt(generation, played)
	if !ok {
		return
	}
	stopsTurns := !c.service.options.KeepTurn && len(i.Turns) > 0 && !c.conversation.HasOtherViewers()
	c.order(func(ctx context.Context) { c.finish(ctx, i, stopsTurns) })
}

// finish stores how far the person has heard what was interrupted, and then stops the turns, whose next input needs the mark.
func (c *connection) finish(ctx context.Context, i voice.Interruption, stopsTurns bool) {
	c.mark(ctx, i.Mark)
	if !stopsTurns {
		return
	}
	for _, turn := range i.Turns {
		if err := c.conversation.Stop(ctx, turn); err != nil {
			c.log.Warn("turn not stopped by an interruption", "turn", turn, "error", err)
		}
	}
}

// say sends a message of the person. It interrupts what is expected, made or heard.
func (c *connection) say(key, text string) {
	if key == "" {
		key = newKey()
	}
	if c.session.IsBusy() {
		c.interrupt(0, -1)
	}
	c.order(func(ctx context.Context) {
		delivery, err := c.conversation.Send(ctx, key, text)
		var refusal *Refusal
		switch {
		case err == nil && delivery.SteeredTurn != "":
			c.session.Unmute(delivery.SteeredTurn)
		case err == nil:
		case errors.As(err, &refusal):
			c.session.Post(voice.Error(codeNotSent, refusal.Message, refusal.Action))
		default:
			c.log.Error("message of a person not stored", "error", err)
			c.session.Post(voice.Error(codeNotSent, "Your message couldn't be stored.", "Say it again."))
		}
	})
}
