package voice

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// microphoneBytes is the size of one second of microphone audio.
	microphoneBytes = MicrophoneRate * 2
	// maxSpeed is how many times faster than real time a microphone may be, and maxAhead how much audio it may send at once, in bytes:
	// what a client has collected while its network was down.
	maxSpeed = 2
	maxAhead = 10 * microphoneBytes
	// maxUtterance is the longest utterance. A button that is stuck must not be transcribed forever.
	maxUtterance = 2 * 60 * microphoneBytes
	// beforeSpeech is how much audio before the detected start belongs to an utterance, in bytes: the detection takes that long.
	beforeSpeech = microphoneBytes * 3 / 10
)

// MicrophoneOptions configure a [Microphone]. All fields but Language and Detect are required.
type MicrophoneOptions struct {
	Recognizer Recognizer
	Language   string
	// Detect finds the utterances in the audio. Otherwise the client marks them.
	Detect bool
	// OnSpeech is called when an utterance was detected.
	OnSpeech func()
	// OnResult is called for each result, in order, including the error that ends a listener. The next utterance begins another one.
	OnResult func(Result)
	Log      *slog.Logger
}

// Microphone passes what a person says to a recogniser. [Microphone.Run] has to be called once; its goroutine calls the functions of the
// options. The other methods may be called by any goroutine and return at once.
type Microphone struct {
	options MicrophoneOptions
	wake    chan struct{}

	mu    sync.Mutex // protects the fields below
	queue []sound
	bytes int // of audio in queue
	// credit is how many bytes may be written, as of countedAt.
	credit    float64
	countedAt time.Time

	// Only the goroutine of Run uses the fields below.
	listener    Listener
	isUtterance bool
	length      int // bytes of the utterance
	activity    activity
	remainder   []byte // less than a frame for activity
	before      []byte // the newest audio before an utterance
}

// sound is audio, or the beginning or end of an utterance.
type sound struct {
	pcm          []byte
	begins, ends bool
}

// NewMicrophone returns a microphone.
func NewMicrophone(o MicrophoneOptions) *Microphone {
	return &Microphone{options: o, wake: make(chan struct{}, 1), credit: maxAhead, countedAt: time.Now()}
}

// Write adds audio, which it doesn't retain. If the audio comes much faster than real time, it is dropped and Write returns
// [errTooFast].
func (m *Microphone) Write(pcm []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now()
	m.credit = min(maxAhead, m.credit+at.Sub(m.countedAt).Seconds()*maxSpeed*microphoneBytes)
	m.countedAt = at
	if float64(len(pcm)) > m.credit || m.bytes+len(pcm) > maxAhead {
		return errTooFast
	}
	m.credit -= float64(len(pcm))
	m.add(sound{pcm: append([]byte(nil), pcm...)})
	return nil
}

// Begin begins an utterance that the client has detected.
func (m *Microphone) Begin() { m.mark(sound{begins: true}) }

// End ends the utterance, whose text is then final.
func (m *Microphone) End() { m.mark(sound{ends: true}) }

// mark adds a mark. A mark that repeats the last one is left out, so that marks can't fill the queue.
func (m *Microphone) mark(s sound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.queue); n > 0 && m.queue[n-1].begins == s.begins && m.queue[n-1].ends == s.ends {
		return
	}
	if len(m.queue) < maxFrames {
		m.add(s)
	}
}

// add adds to the queue. It is called with the lock.
func (m *Microphone) add(s sound) {
	m.queue = append(m.queue, s)
	m.bytes += len(s.pcm)
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run passes audio to the recogniser until ctx ends. When it returns, the listener is closed.
func (m *Microphone) Run(ctx context.Context) {
	defer m.close()
	for {
		var results <-chan Result
		if m.listener != nil {
			results = m.listener.Results()
		}
		select {
		case <-ctx.Done():
			return
		case r, ok := <-results:
			if !ok || r.Err != nil {
				m.isUtterance = false
				m.close()
			}
			if ok {
				m.options.OnResult(r)
			}
		case <-m.wake:
			for _, s := range m.take() {
				m.hear(ctx, s)
			}
		}
	}
}

// take returns what is in the queue.
func (m *Microphone) take() []sound {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.queue
	m.queue, m.bytes = nil, 0
	return list
}

// hear handles a sound.
func (m *Microphone) hear(ctx context.Context, s sound) {
	switch {
	case m.options.Detect && s.pcm == nil:
		// The client marks utterances although the gateway was asked to find them; its marks would cut them.
	case m.options.Detect:
		m.detect(ctx, s.pcm)
	case s.begins:
		m.begin(ctx)
	case s.ends:
		m.end()
	case m.isUtterance:
		m.write(s.pcm)
	}
}

// detect divides audio into frames, and finds utterances in them.
func (m *Microphone) detect(ctx context.Context, pcm []byte) {
	m.remainder = append(m.remainder, pcm...)
	for len(m.remainder) >= activityFrame {
		frame := m.remainder[:activityFrame]
		m.remainder = m.remainder[activityFrame:]
		if m.isUtterance {
			m.write(frame)
		} else {
			m.before = append(m.before, frame...)
			if excess := len(m.before) - beforeSpeech; excess > 0 {
				m.before = append([]byte(nil), m.before[excess:]...)
			}
		}
		switch m.activity.add(frame) {
		case speechStarted:
			m.options.OnSpeech()
			m.begin(ctx)
			if m.isUtterance {
				m.write(m.before)
			}
			m.before = nil
		case speechStopped:
			m.end()
		}
	}
	m.remainder = append([]byte(nil), m.remainder...)
}

// begin begins an utterance, and a listener if there is none.
func (m *Microphone) begin(ctx context.Context) {
	if m.isUtterance {
		m.end() // the mark of its end is missing
	}
	if m.listener == nil {
		l, err := m.options.Recognizer.Listen(ctx, m.options.Language)
		if err != nil {
			m.options.OnResult(Result{Err: fmt.Errorf("listen: %w", err)})
			return
		}
		m.listener = l
	}
	m.isUtterance, m.length = true, 0
}

// write passes audio of an utterance to the listener.
func (m *Microphone) write(pcm []byte) {
	if m.length += len(pcm); m.length > maxUtterance {
		m.options.Log.Info("utterance ended, because it is too long", "bytes", m.length)
		m.end()
		return
	}
	if err := m.listener.Write(pcm); err != nil {
		m.fail(fmt.Errorf("write audio: %w", err))
	}
}

// end ends the utterance.
func (m *Microphone) end() {
	if !m.isUtterance {
		return
	}
	m.isUtterance = false
	if err := m.listener.EndUtterance(); err != nil {
		m.fail(fmt.Errorf("end utterance: %w", err))
	}
}

// fail ends the listener after an error. The results that it has not delivered are lost; the last of them is the same error.
func (m *Microphone) fail(err error) {
	m.isUtterance = false
	m.close()
	m.options.OnResult(Result{Err: err})
}

// close closes the listener.
func (m *Microphone) close() {
	if m.listener == nil {
		return
	}
	if err := m.listener.Close(); err != nil {
		m.options.Log.Warn("recogniser not closed", "error", err)
	}
	m.listener = nil
}
