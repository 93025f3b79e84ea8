// The writer of a session: one goroutine that decides what is written next.

package voice

import (
	"context"
	"errors"
	"time"
)

// Run writes to the client until ctx ends or the connection breaks, and returns the reason. When it returns, all calls of the engine have
// returned.
func (s *Session) Run(ctx context.Context, o Output) error {
	ctx, cancel := context.WithCancel(ctx)
	s.ctx = ctx
	defer s.tasks.Wait()
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		s.mu.Lock()
		write, wait := s.next(time.Now())
		isBehind := s.isBehind
		s.mu.Unlock()
		if isBehind {
			return ErrTooSlow
		}
		if write != nil {
			if err := write(o); err != nil {
				return err
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// forever is longer than any session waits for nothing.
const forever = time.Hour

// next returns what to write now. If that is nil, it returns how long to wait unless something happens. It is called with the lock.
//
// The caller writes without the lock, so that an interruption never waits for the network. Such a write still precedes the flush, because
// the same goroutine does both.
func (s *Session) next(at time.Time) (write func(Output) error, wait time.Duration) {
	wait = s.advance(at)
	if len(s.frames) > 0 {
		q := s.frames[0]
		s.frames[0] = queued{}
		s.frames = s.frames[1:]
		if q.isFlush {
			return Output.Flush, 0
		}
		return func(o Output) error { return o.Frame(q.frame) }, 0
	}
	if len(s.clips) == 0 {
		return nil, wait
	}
	c := s.clips[0]
	if c.leaveOut() || len(c.audio) < 2 {
		return nil, wait // more audio wakes the session
	}
	lead := s.schedule.lead(at)
	// A short frame costs as much as a long one, so it waits for more audio as long as the client has enough.
	if !c.isFinished && len(c.audio) < usualFrame && lead > 2*duration(usualFrame) {
		return nil, min(wait, lead-2*duration(usualFrame))
	}
	length := min(len(c.audio)&^1, usualFrame)
	if excess := lead + duration(int64(length)) - maxLead; lead > 0 && excess > 0 {
		return nil, min(wait, excess)
	}
	if !c.span.isBegun {
		caption := s.begin(c)
		return func(o Output) error { return o.Frame(caption) }, 0
	}
	pcm := c.takeAudio(length)
	s.schedule.add(at, len(pcm))
	s.timeline.sentSamples += int64(len(pcm) / 2)
	return func(o Output) error { return o.Audio(pcm) }, 0
}

// begin begins to send a clip, and returns the frame that precedes it.
func (s *Session) begin(c *clip) Frame {
	c.span.isBegun = true
	c.segment.start = s.timeline.sentSamples - c.skipped/2
	s.timeline.begin(c.segment)
	return captionFrame{
		Type: "caption", Turn: c.answer.turn, Start: c.span.start, End: c.span.end, Sample: c.segment.start, Generation: s.generation, Text: c.unit.Text,
	}
}

// advance moves everything forward that doesn't depend on the connection: it completes clips and answers, begins new clips, and queues
// frames. It returns when it has to be called next.
func (s *Session) advance(at time.Time) (wait time.Duration) {
	wait = s.flushAnswers(at)
	for {
		s.completeClips()
		if s.startClip() || s.completeAnswer() {
			continue
		}
		break
	}
	s.reportState()
	return wait
}

// flushAnswers makes sentences complete whose agent pauses.
func (s *Session) flushAnswers(at time.Time) (wait time.Duration) {
	wait = forever
	remaining := flushAfter - at.Sub(s.grownAt)
	for _, a := range s.answers {
		switch {
		case a.isFlushed || a.isEnded:
		case remaining > 0:
			wait = remaining
		default:
			a.flush()
		}
	}
	return wait
}

// completeClips removes the clips that were sent, and reports those that failed.
//
// A clip that failed may have been sent in part. That part stays, because the client may have played it.
func (s *Session) completeClips() {
	for len(s.clips) > 0 {
		c := s.clips[0]
		c.segment.samples, c.segment.isWhole = c.received/2, c.isFinished
		if c.isFinished && c.skip > 0 {
			c.leaveOut()
		}
		if !c.isDrained() {
			return
		}
		s.clips[0] = nil
		s.clips = s.clips[1:]
		c.span.isBegun = true // also if it has no samples
		if len(s.clips) > 0 && c.skip > 0 && s.clips[0].answer == c.answer {
			s.clips[0].skip += c.skip // the units of this connection may be shorter
		} else if c.skip > 0 {
			s.resume = position{turn: c.answer.turn, samples: c.skip / 2}
		}
		if c.err != nil {
			s.fail(c)
		} else {
			s.failures = 0
		}
	}
}

// fail reports a clip that the engine could not speak.
func (s *Session) fail(c *clip) {
	s.failures++
	s.options.Log.Warn("sentence not spoken", "turn", c.answer.turn, "failures", s.failures, "error", c.err)
	f := Error("speech_failed", "A sentence couldn't be spoken.", "Read it in the conversation.")
	switch {
	case s.failures >= maxFailures:
		f.Message, f.Action = "The rest of the answer isn't spoken, because the speech engine fails.", "Read it in the conversation, and check the speech engine."
		s.silence(c.answer)
	case errors.Is(c.err, errEngineSilent):
		f.Message = "A sentence couldn't be spoken: the speech engine isn't responding."
	}
	if failure, ok := errors.AsType[*Failure](c.err); ok {
		f.Action += " To mend it: " + failure.Advice() + "."
	}
	f.Turn = c.answer.turn
	s.queueNow(f)
}

// silence makes the rest of an answer not be spoken. The next answer is tried again, because the engine may have recovered.
func (s *Session) silence(a *answer) {
	s.failures = 0
	a.newSegmenter = func() segmenter { return noUnits{} }
	a.drop(0)
	s.dropClips()
	a.restart(len(a.text))
}

// startClip begins the clip of the next sentence, if it is time for it.
//
// The next sentence is begun when the audio of the one before has begun to arrive, so an engine works on the sentence that is needed first.
func (s *Session) startClip() bool {
	if n := len(s.clips); n > prefetch || s.syntheses >= maxSyntheses || n > 0 && s.clips[n-1].received == 0 && !s.clips[n-1].isFinished {
		return false
	}
	for _, a := range s.answers {
		if u, sp, ok := a.take(); ok {
			s.start(a, u, sp)
			return true
		}
		if !a.isTaken() {
			return false // the answers behind it have to wait
		}
	}
	return false
}

// completeAnswer removes the first answer if all of it was sent.
//
// The client plays its queue for up to maxLead after that, so the answer is remembered until the client has reported its last sample.
func (s *Session) completeAnswer() bool {
	if len(s.answers) == 0 || !s.answers[0].isTaken() {
		return false
	}
	a := s.answers[0]
	for _, c := range s.clips {
		if c.answer == a {
			return false
		}
	}
	s.answers = s.answers[1:]
	if n := len(s.timeline.segments); n > 0 && s.timeline.segments[n-1].answer == a {
		s.finished = append(s.finished, completion{a, s.timeline.sentSamples})
		if len(s.finished) > maxSegments {
			s.finished = s.finished[1:]
		}
	}
	s.queueNow(doneFrame{Type: "stream_done", Turn: a.turn, Generation: s.generation, Samples: s.timeline.sentSamples})
	return true
}

// reportState queues a frame if the state has changed.
func (s *Session) reportState() {
	state := stateFrame{Type: "state", State: stateListening, Generation: s.generation}
	if len(s.answers) > 0 {
		a := s.answers[0]
		state.State, state.Turn = stateThinking, a.turn
		if len(s.clips) > 0 && s.clips[0].answer == a && len(s.clips[0].audio) > 1 && s.clips[0].skip == 0 || s.state.State == stateSpeaking && s.state.Turn == a.turn && s.state.Generation == s.generation {
			state.State = stateSpeaking
		}
	}
	if state.State == s.state.State && state.Turn == s.state.Turn && state.Generation == s.state.Generation {
		return
	}
	s.state = state
	s.queueNow(state)
}
