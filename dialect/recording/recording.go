package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/sse"
)

var (
	// ErrForm says that the input is none of the known forms.
	ErrForm = errors.New("recording: unknown form")
	// ErrTooLong says that a line is above the limit.
	ErrTooLong = errors.New("recording: line too long")
	// ErrClient says that the recording has no such client.
	ErrClient = errors.New("recording: no such client")
)

// maxLine bounds a line, in bytes: a frame of the longest allowed, quoted, and what the recorder adds.
const maxLine = 2 * dialect.MaxLine

// Form is how a stream was recorded.
type Form string

// The forms.
const (
	SSE      Form = "sse"      // raw server-sent events
	Lines    Form = "lines"    // one JSON value a line
	Recorder Form = "recorder" // {t, c, dir, frame} lines
)

// Frame is a recorded frame.
type Frame struct {
	At int64 // epoch milliseconds; 0 where the form keeps no times
	dialect.Frame
}

// Reader reads the frames of one stream. It is not safe for concurrent use.
type Reader struct {
	form      Form
	in        *bufio.Reader
	line      int // number of the last line read, from 1
	firstLine []byte
	client    string
	clients   []string
	hasFrames bool // a frame of the client was given
	closed    bool // it has closed
	head      Head
	body      pieces // that the client's lines are pieces of
	at        int64  // of the last line of the client's

	sse   sse.Reader
	queue []Frame
	piece []byte
}

// NewReader begins to read. client chooses one connection of a recorder's lines; empty is the first one on which
// anything came in. It returns [ErrForm] where the form can't be told, and io.EOF for an empty input.
func NewReader(r io.Reader, client string) (*Reader, error) {
	rd := &Reader{in: bufio.NewReaderSize(r, 64<<10), client: client}
	if mark, _ := rd.in.Peek(len(bom)); bytes.Equal(mark, bom) {
		if _, err := rd.in.Discard(len(bom)); err != nil {
			return nil, err
		}
	}
	if err := rd.detect(); err != nil {
		return nil, err
	}
	if client != "" && rd.form != Recorder {
		return nil, fmt.Errorf("%w %q: the recording is of form %s, which has none", ErrClient, client, rd.form)
	}
	return rd, nil
}

var bom = []byte("\xef\xbb\xbf")

// Form returns the form of the recording.
func (r *Reader) Form() Form { return r.form }

// Clients returns the connections that were seen so far, in the order of their first frame. After io.EOF these are all.
func (r *Reader) Clients() []string { return slices.Clone(r.clients) }

// Client returns which connection is read; empty before the first frame where none was asked for.
func (r *Reader) Client() string { return r.client }

// Head returns what the recording says of itself, as far as it was read; mostly nothing.
func (r *Reader) Head() Head { return r.head }

// detect reads as far as the form shows.
func (r *Reader) detect() error {
	for {
		c, err := r.in.Peek(1)
		if err != nil {
			return err
		}
		switch c[0] {
		case '\n', '\r', ' ', '\t':
			if _, err := r.in.Discard(1); err != nil {
				return err
			}
			continue
		case '{':
			if r.firstLine, err = r.readLine(); err != nil {
				return err
			}
			r.form = Lines
			var l recorded
			if json.Unmarshal(r.firstLine, &l) == nil && l.Dir != "" && l.Time != nil {
				r.form = Recorder
				r.openBody(&l)
			}
			return nil
		}
		// A line of server-sent events is a comment or one of four fields.
		head, _ := r.in.Peek(6)
		for _, f := range []string{":", "data", "event", "id", "retry"} {
			if bytes.HasPrefix(head, []byte(f)) {
				r.form = SSE
				return nil
			}
		}
		return fmt.Errorf("%w: it begins with %q", ErrForm, head)
	}
}

// recorded is a recorder's line.
type recorded struct {
	Time   *float64        `json:"t"`
	Client json.RawMessage `json:"c"`
	Dir    string          `json:"dir"`
	Frame  json.RawMessage `json:"frame"`
	// A piece of a body in place of a frame: as text, or, where it is none, in base64.
	Raw    string `json:"raw"`
	Base64 []byte `json:"base64"`
}

// The directions of a recorder's lines; those that went out and all others are passed over.
const (
	dirOpen  = "open"
	dirIn    = "in"
	dirClose = "close"
)

// Next returns the next frame, whose data is the caller's, or io.EOF after the last. Other errors are final.
func (r *Reader) Next() (Frame, error) {
	switch r.form {
	case SSE:
		return r.nextEvent()
	case Recorder:
		return r.nextRecorded()
	}
	line, err := r.nextLine()
	if err != nil {
		return Frame{}, err
	}
	return Frame{Frame: dialect.Frame{Data: line}}, nil
}

// nextLine returns the next line that is not blank. The last one, where it is cut, is left out.
func (r *Reader) nextLine() ([]byte, error) {
	for {
		line := r.firstLine
		if r.firstLine = nil; line == nil {
			var err error
			if line, err = r.readLine(); err != nil {
				return nil, err
			}
		}
		terminated := bytes.HasSuffix(line, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !terminated && !json.Valid(line) {
			return nil, io.EOF
		}
		return line, nil
	}
}

// readLine returns a line with its end, and io.EOF only where there is none.
func (r *Reader) readLine() ([]byte, error) {
	r.line++
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("line %d: %w: more than %d bytes", r.line, ErrTooLong, maxLine)
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return nil, err
	}
}

func (r *Reader) nextRecorded() (Frame, error) {
	for len(r.queue) == 0 {
		line, err := r.nextLine()
		if errors.Is(err, io.EOF) {
			if r.client != "" && !slices.Contains(r.clients, r.client) {
				return Frame{}, fmt.Errorf("%w %q; there are: %q", ErrClient, r.client, r.clients)
			}
			if r.body.end(r.give); len(r.queue) > 0 {
				break
			}
		}
		if err != nil {
			return Frame{}, err
		}
		var l recorded
		if err := json.Unmarshal(line, &l); err != nil {
			return Frame{}, fmt.Errorf("recording: line %d: %w", r.line, err)
		}
		name := clientName(l.Client)
		if !slices.Contains(r.clients, name) && len(r.clients) < maxClients {
			r.clients = append(r.clients, name)
		}
		if r.client == "" && l.Dir == dirIn {
			r.client = name
		}
		if r.closed || r.client != "" && name != r.client {
			continue // read on, to know all clients
		}
		if err := r.recorded(&l); err != nil {
			return Frame{}, fmt.Errorf("recording: line %d: %w", r.line, err)
		}
	}
	f := r.queue[0]
	r.queue = r.queue[1:]
	return f, nil
}

// recorded takes a line of the client that is read.
func (r *Reader) recorded(l *recorded) error {
	if l.Time != nil {
		r.at = int64(*l.Time)
	}
	switch l.Dir {
	case dirOpen:
		r.openBody(l)
	case dirIn:
		r.hasFrames = true
		piece := l.Base64
		if l.Raw != "" {
			piece = []byte(l.Raw)
		}
		if len(piece) > 0 {
			return r.body.feed(piece, r.give)
		}
		if len(l.Frame) == 0 {
			return nil
		}
		data := l.Frame
		var text string
		if json.Unmarshal(l.Frame, &text) == nil {
			data = []byte(text) // a frame that is no JSON object was kept as a string
		}
		r.give(dialect.Frame{Data: data})
	case dirClose:
		r.body.end(r.give)
		// A connection that was refused before anything came in may yet be made.
		r.closed = r.hasFrames
	}
	return nil
}

// opened takes what a recording says of itself, and that another body begins.
func (r *Reader) openBody(l *recorded) {
	if l.Dir != dirOpen {
		return
	}
	r.body.end(r.give)
	var h Head
	if json.Unmarshal(l.Frame, &h) == nil && h != (Head{}) {
		r.head = h
	}
}

func (r *Reader) give(f dialect.Frame) { r.queue = append(r.queue, Frame{At: r.at, Frame: f}) }

// maxClients bounds how many names of clients are kept.
const maxClients = 1000

func clientName(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func (r *Reader) nextEvent() (Frame, error) {
	for len(r.queue) == 0 {
		if r.piece == nil {
			r.piece = make([]byte, 32<<10)
		}
		n, err := r.in.Read(r.piece)
		if n > 0 {
			if ferr := r.sse.Feed(r.piece[:n], r.event); ferr != nil {
				return Frame{}, fmt.Errorf("recording: %w", ferr)
			}
			continue
		}
		if err != nil {
			return Frame{}, err // an event that no blank line ends is none
		}
	}
	f := r.queue[0]
	r.queue = r.queue[1:]
	return f, nil
}

func (r *Reader) event(e sse.Event) error {
	r.queue = append(r.queue, Frame{Frame: dialect.Frame{Event: e.Name, ID: e.ID, Data: bytes.Clone(e.Data)}})
	return nil
}
