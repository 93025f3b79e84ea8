package voice

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/voice/sentence"
)

const (
	// maxLead is how much audio is sent ahead of real time. A client needs a few hundred milliseconds against jitter; more would only
	// have to be dropped at an interruption.
	maxLead = 2 * time.Second
	// maxFrame is the size of the largest frame of PCM in bytes: 100 ms.
	maxFrame = SpeechRate / 10 * 2
	// usualFrame is the size of a frame of PCM in bytes if enough audio is there: 40 ms. A frame is also what an interruption may have to
	// wait for.
	usualFrame = SpeechRate / 25 * 2

	// prefetch is how many sentences are made while one is sent.
	prefetch = 2
	// maxSyntheses limits the calls of the engine that have not returned, among them those that were cancelled.
	maxSyntheses = 8
	// maxFailures is how many sentences of an answer may fail one after another. The rest of the answer is then not spoken.
	maxFailures = 3
	// maxFrames is how many JSON frames may wait. A client that is that far behind doesn't read.
	maxFrames = 1024
	// flushAfter is how long an agent may pause before a sentence counts as complete although more text could belong to it.
	flushAfter = 400 * time.Millisecond
)

// Options configure a [Session].
type Options struct {
	// Engine speaks. If it is nil, nothing is spoken, and the session only reports states.
	Engine Engine
	// Voice and Language are those of each [Utterance].
	Voice, Language string
	Log             *slog.Logger // required

	newSegmenter func() segmenter // instead of package sentence's
}

// Output is the connection to the client. One goroutine calls its methods. An error ends the session.
type Output interface {
	Audio(pcm []byte) error
	// Flush makes the client drop the audio that it has not played.
	Flush() error
	Frame(f Frame) error
}

// Session speaks the answers of one conversation to one person. [Session.Run] has to be called once. The other methods may be called by
// any goroutine, return at once, and have no effect after Run has returned.
type Session struct {
	options Options
	ctx     context.Context // of Run
	tasks   sync.WaitGroup  // calls of the engine
	wake    chan struct{}   // has a value if there may be something to do

	mu         sync.Mutex // protects the fields below, and the clips
	generation int64      // from 1
	answers    []*answer  // in the order in which they are spoken; the first one is being spoken
	grownAt    time.Time  // when the text of an answer grew last
	clips      []*clip    // of the current generation; the first one is sent
	syntheses  int        // calls of the engine that have not returned
	failures   int        // sentences that failed since the last one that didn't
	frames     []queued   // to write before more audio
	schedule   schedule
	timeline   timeline
	finished   []completion   // answers whose last sample was sent, and has perhaps not been played
	muted      map[string]int // turns that were interrupted and run on, with the length of their text
	resume     position
	state      stateFrame // the last that was queued
	isBehind   bool       // too many frames wait
}

// queued is something to write: a flush, or a frame.
type queued struct {
	frame   Frame
	isFlush bool
	isOld   func() bool // reports that an interruption makes the frame obsolete; nil if none does
}

// position is where an earlier connection stopped.
type position struct {
	turn    string
	start   int   // of a sentence in the text
	samples int64 // that were received since its beginning
}

// completion is an answer whose audio was sent completely.
type completion struct {
	answer *answer
	end    int64 // sample of the generation behind it
}

// Interruption is what an interruption has ended.
type Interruption struct {
	// Turns are those that were or would have been spoken and have not ended.
	Turns []string
	// Mark is how far the person has heard the answer that was spoken. Its turn is empty if none was.
	Mark HeardMark
}

// NewSession returns a session.
func NewSession(o Options) *Session {
	return &Session{
		options: o, wake: make(chan struct{}, 1), generation: 1, muted: map[string]int{}, state: stateFrame{State: stateListening, Generation: 1},
	}
}

// poke wakes Run.
func (s *Session) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Resume makes the answer of a turn begin at a sentence, of which samples were received on an earlier connection. It has to be called
// before the first Update.
func (s *Session) Resume(turn string, start int, samples int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resume = position{turn, max(start, 0), max(samples, 0)}
}

// Update sets the visible text of a turn. The first call for a turn says that it has begun. After the call with isEnded, there must be
// no further one for the turn.
func (s *Session) Update(turn, text string, isEnded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.poke()
	if _, ok := s.muted[turn]; ok {
		if s.muted[turn] = len(text); isEnded {
			delete(s.muted, turn)
		}
		return
	}
	a := s.answer(turn)
	if text != a.text || a.isRegrowing {
		a.setText(text)
		s.dropClips()
		s.grownAt = time.Now()
	}
	if isEnded {
		a.end()
	}
}

// answer returns the answer of a turn, which it adds if it is new. It is called with the lock.
func (s *Session) answer(turn string) *answer {
	for _, a := range s.answers {
		if a.turn == turn {
			return a
		}
	}
	start := 0
	if turn == s.resume.turn {
		start = s.resume.start
	}
	a := newAnswer(turn, start, s.newSegmenter())
	s.answers = append(s.answers, a)
	return a
}

// newSegmenter returns the function for new segmenters. Without an engine nothing has to be divided.
func (s *Session) newSegmenter() func() segmenter {
	switch {
	case s.options.Engine == nil:
		return func() segmenter { return noUnits{} }
	case s.options.newSegmenter != nil:
		return s.options.newSegmenter
	}
	return func() segmenter { return sentence.New(s.options.Language) }
}

// dropClips drops the clips whose text was replaced. It is called with the lock.
func (s *Session) dropClips() {
	n := 0
	for _, c := range s.clips {
		if c.span.isDropped {
			c.cancel(errDropped)
			continue
		}
		s.clips[n] = c
		n++
	}
	clear(s.clips[n:])
	s.clips = s.clips[:n]
}

// Unmute makes the further text of a turn be spoken that was interrupted and runs on: the agent has got a message into it.
func (s *Session) Unmute(turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	length, ok := s.muted[turn]
	if !ok {
		return
	}
	delete(s.muted, turn)
	s.answers = append(s.answers, newAnswer(turn, length, s.newSegmenter()))
	s.poke()
}

// Post queues a frame.
func (s *Session) Post(f Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue(queued{frame: f})
	s.poke()
}

// queue queues a frame or flush. It is called with the lock.
func (s *Session) queue(q queued) {
	if len(s.frames) >= maxFrames {
		s.isBehind = true
		return
	}
	s.frames = append(s.frames, q)
}

// queueNow queues a frame that an interruption makes obsolete. It is called with the lock.
func (s *Session) queueNow(f Frame) {
	generation := s.generation
	s.queue(queued{frame: f, isOld: func() bool { return s.generation != generation }})
}

// Interrupt ends the speech: the audio that was not sent is dropped, and the client gets a flush. played is how many samples of the
// generation the client has played; if it is negative, that is estimated. If generation is neither 0 nor the current one, the client has
// not seen an earlier interruption yet, and Interrupt returns false without an effect.
func (s *Session) Interrupt(generation, played int64) (Interruption, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation != 0 && generation != s.generation {
		return Interruption{}, false
	}
	if played >= 0 {
		s.timeline.report(played)
	}
	i := Interruption{}
	i.Mark, _ = s.mark()
	for _, a := range s.answers {
		if !a.isEnded {
			i.Turns = append(i.Turns, a.turn)
			s.muted[a.turn] = len(a.text)
		}
	}
	for _, c := range s.clips {
		c.cancel(errDropped)
	}
	s.generation++
	n := 0
	for _, q := range s.frames {
		if q.isOld == nil || !q.isOld() {
			s.frames[n] = q
			n++
		}
	}
	clear(s.frames[n:])
	s.frames = append(s.frames[:n], queued{isFlush: true})
	s.answers, s.clips, s.finished, s.timeline, s.schedule, s.failures, s.resume = nil, nil, nil, timeline{}, schedule{}, 0, position{}
	s.poke()
	return i, true
}

// Played stores how many samples of a generation the client has played. It returns true with the answer whose last sample was played, if
// there is one.
func (s *Session) Played(generation, samples int64) (HeardMark, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation != 0 && generation != s.generation {
		return HeardMark{}, false
	}
	s.timeline.report(samples)
	var h HeardMark
	isWhole := false
	for len(s.finished) > 0 && s.finished[0].end <= s.timeline.played {
		a := s.finished[0].answer
		h, isWhole = HeardMark{Turn: a.turn, Offset: len(a.text), IsWhole: true}, true
		s.finished = s.finished[1:]
	}
	return h, isWhole
}

// HeardMark returns how far the answer that is played has been heard. It returns false if none is.
func (s *Session) HeardMark() (HeardMark, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark()
}

// mark is HeardMark with the lock. A client that doesn't report what it has played is taken to play in real time.
func (s *Session) mark() (HeardMark, bool) {
	played := s.timeline.played
	if !s.timeline.reported {
		played = max(0, s.timeline.sentSamples-int64(s.schedule.lead(time.Now()).Seconds()*SpeechRate))
	}
	h, ok := s.timeline.at(played)
	for _, f := range s.finished {
		if f.answer.turn == h.Turn && f.end <= played {
			h.Offset, h.IsWhole = len(f.answer.text), true
		}
	}
	return h, ok
}

// IsSpeaking reports whether the person hears an answer now, as far as the session knows.
func (s *Session) IsSpeaking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schedule.lead(time.Now()) > 0 || len(s.clips) > 0
}

// IsBusy reports whether an answer is expected, made or heard.
func (s *Session) IsBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schedule.lead(time.Now()) > 0 || len(s.answers) > 0
}
