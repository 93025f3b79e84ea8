package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
)

// defaultPace is the time between two frames if the file has no times. It is that of a model with 50 tokens a second.
const defaultPace = 20 * time.Millisecond

// aliveEvery is how often the agent reports progress during a long recorded pause. It is shorter than any useful limit on silence.
const aliveEvery = 10 * time.Second

// Config is the configuration of an [Agent]. All fields but File and Dialect may be empty.
type Config struct {
	// File is the path of the recording. It is opened again for each turn.
	File    string
	Dialect dialect.Dialect
	// Client selects one connection of a file with several. If it is empty, the first one is played.
	Client string
	// Speed is a factor of the recorded pace. 0 means as fast as possible.
	Speed float64
}

// Agent plays a file. Any number of turns may play it at the same time, since each opens it. It holds no file open
// between turns.
type Agent struct{ cfg Config }

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Resumer = (*Agent)(nil)
)

// New returns an agent. It reads the first frame, so that a wrong file or client is an error at the start of the gateway and not in the
// first turn. A recording without frames is accepted, but an empty file isn't.
func New(cfg Config) (*Agent, error) {
	a := &Agent{cfg}
	r, err := a.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := r.Next(); err != nil && !errors.Is(err, io.EOF) {
		return nil, a.error(err)
	}
	return a, nil
}

// Kind returns the kind replay. The registry has the dialects that its option can name. Without that option the
// dialect is the one that the recording names; a file of another form, such as a saved body, names none.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "replay",
		Summary: "plays a recorded or written stream in any dialect, at its recorded pace",
		Target:  "FILE",
		Options: []agent.Option{
			{Name: "dialect", Help: "the dialect of the file", Default: "the one named in the file"},
			{Name: "speed", Help: "factor of the recorded pace; 0 is as fast as possible", Default: "1"},
			{Name: "client", Help: "connection to play, if the file has several", Default: "the first one"},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			name := s.Options["dialect"]
			if name == "" {
				name = dialectOf(s.Target, s.Options["client"])
			}
			if name == "" {
				return nil, fmt.Errorf("replay %s: the dialect is missing: replay:%s?dialect=NAME", s.Target, s.Target)
			}
			d, err := dialects.Lookup(name)
			if err != nil {
				return nil, fmt.Errorf("replay %s: %w", s.Target, err)
			}
			speed, err := s.Float("speed", 1)
			if err != nil {
				return nil, err
			}
			return New(Config{File: s.Target, Dialect: d, Client: s.Options["client"], Speed: speed})
		},
	}
}

// dialectOf returns the dialect named in a recording, or "" if it names none or can't be read.
func dialectOf(path, client string) string {
	a := Agent{Config{File: path, Client: client}}
	r, err := a.open()
	if err != nil {
		return ""
	}
	defer r.Close()
	_, _ = r.Next() // some formats name the dialect after the head; New reports errors of the file
	return r.Head().Dialect
}

// Run plays the whole file. The input is ignored: every message gets the same answer.
func (a *Agent) Run(ctx context.Context, _ agent.Input, emitter *agent.Emitter) error {
	return a.play(ctx, state{}, emitter)
}

// Resume implements [agent.Resumer]. It plays the frames after the last committed one.
func (a *Agent) Resume(ctx context.Context, _ agent.Input, raw json.RawMessage, emitter *agent.Emitter) error {
	var s state
	if len(raw) > 0 { // otherwise nothing was emitted before the restart
		if err := json.Unmarshal(raw, &s); err != nil {
			return a.error(fmt.Errorf("stored state: %w", err))
		}
	}
	return a.play(ctx, s, emitter)
}

// state is the position of a turn, which is stored with it. A change of its JSON form would end the turns that
// are resumed after an update of the gateway.
type state struct {
	// Frame is the number of frames that were played, whether or not they had operations.
	Frame int `json:"frame"`
	// Size is that of the file in bytes. It shows whether the file was changed, because the position would then be
	// wrong.
	Size int64 `json:"size"`
	// Decoder is the state of the decoder after Frame frames. It is empty if the decoder is as new.
	Decoder json.RawMessage `json:"decoder,omitempty"`
}

// play plays the file for one turn, from the frame after those that from counts. It reads the skipped frames
// too, since their times determine when the next frame is due. The clock starts when the turn is resumed, so a
// pause that was interrupted by a restart is waited for again in full.
func (a *Agent) play(ctx context.Context, from state, emitter *agent.Emitter) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if from.Frame > 0 && from.Size != r.size {
		return a.error(fmt.Errorf("the file has changed since the turn began (%d bytes, now %d)", from.Size, r.size))
	}
	p := &player{agent: a, emitter: emitter, decoder: a.cfg.Dialect.Decoder(), state: state{Frame: from.Frame, Size: r.size}}
	if from.Decoder != nil {
		if err := p.decoder.Restore(from.Decoder); err != nil {
			return a.error(fmt.Errorf("restore decoder: %w", err))
		}
	}
	emitter.OnEnd(p.flush)
	emitter.Body(a.cfg.Dialect.Name)
	clock := pacer{speed: a.cfg.Speed, emitter: emitter}
	for n := 0; ; n++ {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a.error(err)
		}
		if n < from.Frame {
			clock.last = f.At
			continue
		}
		if err := clock.wait(ctx, f.At); err != nil {
			return err
		}
		emitter.CaptureReceived(body(a.cfg.Dialect.Framing, f.Frame))
		if err := p.frame(f.Frame); err != nil {
			return p.finish(err)
		}
	}
	return p.finish(p.end())
}

// player plays the file for one turn. It is used by the goroutine of Run, except flush, which the emitter calls
// at the turn's end.
type player struct {
	agent   *Agent
	emitter *agent.Emitter
	decoder dialect.Decoder
	state   state
	// closed says that the decoder is closed, so that it isn't closed twice. The emitter's lock guards it.
	closed bool
}

// frame emits the operations of one frame together with the state after it. A frame without operations isn't
// committed; after a restart it is decoded again, with the same result, because a decoder depends only on its
// state and the frame.
func (p *player) frame(f dialect.Frame) error {
	return p.emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		p.state.Frame++
		ops, err := p.decoder.Decode(f)
		if err != nil || len(ops) == 0 {
			return ops, nil, err
		}
		if p.state.Decoder, err = p.decoder.State(); err != nil {
			return ops, nil, fmt.Errorf("state of decoder: %w", err)
		}
		s, err := json.Marshal(p.state)
		return ops, s, err
	})
}

// body returns the bytes of a frame in a body, for the capture. Files may have another form than the original stream,
// so these bytes are encoded again: a line, or a server-sent event.
func body(framing dialect.Framing, f dialect.Frame) []byte {
	if framing == dialect.Lines {
		return append(bytes.Clone(f.Data), '\n')
	}
	b, err := sse.AppendEvent(nil, f.ID, f.Event, f.Data)
	if err != nil {
		return f.Data // the frame isn't from server-sent events, so it has no other form
	}
	return b
}

// end closes the decoder at the end of the file. A dialect that requires an explicit end returns
// [dialect.ErrCutShort] if the file doesn't contain it.
func (p *player) end() error {
	return p.emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		p.closed = true
		ops, err := p.decoder.Close()
		return ops, nil, err
	})
}

// flush returns the operations that the decoder still buffers at the turn's end. The emitter must be locked.
func (p *player) flush() []event.Event {
	if p.closed {
		return nil
	}
	p.closed = true
	// An error for an incomplete stream is expected, since the turn ended before it.
	ops, _ := p.decoder.Close()
	return ops
}

// finish returns the result of Run for the error that stopped the playback, or for nil.
func (p *player) finish(err error) error {
	switch {
	case errors.Is(err, agent.ErrTurnOver):
		return nil // the stream or a user has ended the turn
	case errors.Is(err, dialect.ErrCutShort):
		return &agent.Error{Code: "cut_short", Message: "the recording ends before its turn does", Detail: p.agent.error(err).Error()}
	case err != nil:
		return p.agent.error(err)
	}
	return nil
}

func (a *Agent) error(err error) error { return fmt.Errorf("replay %s: %w", a.cfg.File, err) }

// file is an open recording. size is its size when it was opened, in bytes.
type file struct {
	*recording.Reader
	f    *os.File
	size int64
}

func (f *file) Close() error { return f.f.Close() }

// open opens the file for one turn. Each turn opens it again, so a file that is replaced is played from the
// next turn on.
func (a *Agent) open() (*file, error) {
	f, err := os.Open(a.cfg.File)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err) // the error names the file
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, a.error(err)
	}
	r, err := recording.NewReader(f, a.cfg.Client)
	if errors.Is(err, io.EOF) {
		err = errors.New("the file is empty")
	}
	if err != nil {
		f.Close()
		return nil, a.error(err)
	}
	return &file{r, f, info.Size()}, nil
}
