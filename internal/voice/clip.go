// The audio of one sentence, from the engine's first byte to the last one that is sent.

package voice

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/voice/sentence"
)

const (
	// maxBuffered is how much audio of one sentence is buffered, in bytes: 22 seconds. Then its engine has to wait.
	maxBuffered = 1 << 20
	// readSize is the largest read from an engine, in bytes: a third of a second.
	readSize = 16 << 10
	// silenceLimit is how long an engine may take for its first audio, or pause later. A local engine under load needs a few seconds.
	silenceLimit = 15 * time.Second
)

// clip is a sentence whose audio is made or sent. Its session's lock protects all fields that change.
type clip struct {
	answer *answer
	span   *span
	unit   sentence.Unit
	cancel context.CancelCauseFunc

	audio      []byte // received and not sent
	received   int64  // bytes
	err        error  // why the audio ended too early
	isFinished bool   // no more audio follows
	segment    *segment
	skip       int64         // bytes that are left out, because the client has them from an earlier connection
	skipped    int64         // bytes that were left out
	room       chan struct{} // has a value when audio was taken
}

// takeAudio takes up to limit bytes of whole samples.
func (c *clip) takeAudio(limit int) []byte {
	n := min(limit, len(c.audio)) &^ 1
	pcm := c.audio[:n:n]
	c.audio = c.audio[n:]
	select {
	case c.room <- struct{}{}:
	default:
	}
	return pcm
}

// leaveOut drops what the client has from an earlier connection, and reports whether that is all of what has arrived.
func (c *clip) leaveOut() bool {
	if c.skip > 0 {
		n := int64(len(c.takeAudio(int(min(c.skip, int64(len(c.audio)))))))
		c.skip, c.skipped = c.skip-n, c.skipped+n
	}
	return c.skip > 0
}

// isDrained reports whether nothing is left to send. A last byte that is half a sample doesn't count.
func (c *clip) isDrained() bool { return c.isFinished && len(c.audio) < 2 }

// start begins a clip. It is called with the lock.
func (s *Session) start(a *answer, u sentence.Unit, sp *span) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	c := &clip{answer: a, span: sp, unit: u, cancel: cancel, room: make(chan struct{}, 1)}
	if s.resume.turn == a.turn {
		c.skip = s.resume.samples * 2
		s.resume = position{}
	}
	c.segment = &segment{answer: a, span: sp, runes: utf8.RuneCountInString(u.Text)}
	s.clips = append(s.clips, c)
	s.syntheses++
	s.tasks.Go(func() {
		err := s.synthesize(ctx, c)
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.syntheses--
		c.isFinished, c.err = true, err
		s.poke()
	})
}

// synthesize reads the audio of a clip from the engine.
func (s *Session) synthesize(ctx context.Context, c *clip) (err error) {
	stall := time.AfterFunc(silenceLimit, func() { c.cancel(errEngineSilent) })
	defer func() {
		stall.Stop()
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	audio, err := s.options.Engine.Speak(ctx, Utterance{
		Text: c.unit.Text, Voice: s.options.Voice, Language: cmp.Or(c.unit.Language, s.options.Language),
	})
	if err != nil {
		return err
	}
	defer func() { _ = audio.Close() }() // what could fail is reported by Read
	buffer := make([]byte, readSize)
	for {
		n, err := audio.Read(buffer)
		stall.Stop()
		if !s.receive(ctx, c, buffer[:n]) {
			return context.Cause(ctx)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		stall.Reset(silenceLimit)
	}
}

// receive adds audio to a clip. It waits while the clip has too much, and returns false if the clip is dropped.
func (s *Session) receive(ctx context.Context, c *clip, pcm []byte) bool {
	s.mu.Lock()
	c.audio = append(c.audio, pcm...)
	c.received += int64(len(pcm))
	s.poke()
	s.mu.Unlock()
	for {
		s.mu.Lock()
		isFull := len(c.audio) > maxBuffered
		s.mu.Unlock()
		if !isFull {
			return ctx.Err() == nil
		}
		select {
		case <-c.room:
		case <-ctx.Done():
			return false
		}
	}
}
