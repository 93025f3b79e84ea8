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
)

var (
	// errForm reports an input that begins like none of the forms.
	errForm = errors.New("recording: unknown form")
	// errTooLong reports a line of more than maxLine bytes.
	errTooLong = errors.New("recording: line too long")
	// errClient reports that the recording has no connection with the requested name.
	errClient = errors.New("recording: no such client")
)

// maxLine is the limit of a line in bytes. A frame may have dialect.MaxLine bytes, and escaping it as a JSON string makes it longer.
const maxLine = 2 * dialect.MaxLine

// form is the file format of a recording. The package comment describes all three.
type form string

const (
	formSSE      form = "sse"      // raw server-sent events
	formLines    form = "lines"    // one JSON value a line
	formRecorder form = "recorder" // lines of {t, c, dir, frame}, which [Writer] writes
)

// Frame is a recorded frame.
type Frame struct {
	At int64 // epoch milliseconds; 0 if the form has no timestamps
	dialect.Frame
}

// Reader reads the frames of one stream. It is not safe for concurrent use.
type Reader struct {
	form      form
	in        *bufio.Reader
	line      int // number of the last line read, from 1
	firstLine []byte
	client    string
	clients   []string
	hasFrames bool // a line of the client's input was read
	closed    bool // the client's connection has closed; later lines of it are ignored
	head      Head
	body      pieces // the current body, if the recording has it in pieces: raw server-sent events, or raw lines of the client
	at        int64  // timestamp of the client's last line
	queue     []Frame
}

// NewReader returns a reader of r. It detects the form from the first line, so it reads from r. client selects a connection of a
// recorder's lines; if it is empty, the first connection with input is selected. NewReader returns io.EOF if r is empty, and an error
// if the form is unknown or client is set for a form without connections.
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
	if client != "" && rd.form != formRecorder {
		return nil, fmt.Errorf("%w %q: a recording of form %q has no clients", errClient, client, rd.form)
	}
	return rd, nil
}

var bom = []byte("\xef\xbb\xbf")

// IsSSE reports whether the recording is raw server-sent events, so that the file is the body byte for byte.
func (r *Reader) IsSSE() bool { return r.form == formSSE }

// Clients returns the names of the connections read so far, in the order of their first lines. After io.EOF the list is complete.
func (r *Reader) Clients() []string { return slices.Clone(r.clients) }

// Client returns the name of the selected connection. It is empty until the first frame if NewReader was called without a name.
func (r *Reader) Client() string { return r.client }

// Head returns the recording's description of itself, read so far. Most recordings have none.
func (r *Reader) Head() Head { return r.head }

// detect sets the form from the first character that isn't white space, and for an object from the fields of the first line.
// It keeps that line in firstLine, because nextLine must return it again.
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
			r.form = formLines
			var l recorded
			if json.Unmarshal(r.firstLine, &l) == nil && l.Dir != "" && l.Time != nil {
				r.form = formRecorder
				r.openBody(&l)
			}
			return nil
		}
		// A line of server-sent events is a comment or has one of four field names.
		head, _ := r.in.Peek(6)
		for _, f := range []string{":", "data", "event", "id", "retry"} {
			if bytes.HasPrefix(head, []byte(f)) {
				r.form, r.body.form = formSSE, formSSE
				return nil
			}
		}
		return fmt.Errorf("%w: the input begins with %q", errForm, head)
	}
}

// recorded is a line of the recorder form.
type recorded struct {
	Time   *float64        `json:"t"`
	Client json.RawMessage `json:"c"`
	Dir    string          `json:"dir"`
	Frame  json.RawMessage `json:"frame"`
	// Instead of Frame, a line may have a piece of a body: as text, or in base64 if it isn't valid UTF-8.
	Raw    string `json:"raw"`
	Base64 []byte `json:"base64"`
}

// Values of recorded.Dir. Lines with other values, such as "out" for the gateway's own messages, are skipped.
const (
	dirOpen  = "open"
	dirIn    = "in"
	dirClose = "close"
)

// Next returns the next frame, or io.EOF after the last one. The caller owns the frame's data. After any error, the reader must not be
// used again.
func (r *Reader) Next() (Frame, error) {
	for len(r.queue) == 0 {
		if err := r.readMore(); err != nil {
			return Frame{}, err
		}
	}
	f := r.queue[0]
	r.queue = r.queue[1:]
	return f, nil
}

// readMore reads the next part of the recording, which may complete any number of frames, and adds those to the queue.
func (r *Reader) readMore() error {
	switch r.form {
	case formSSE:
		return r.readEvents()
	case formRecorder:
		return r.readRecorded()
	}
	line, err := r.nextLine()
	if err == nil {
		r.enqueue(dialect.Frame{Data: line})
	}
	return err
}

// nextLine returns the next line that isn't blank. It drops the last line if that has no line end and isn't valid JSON: the
// recording stopped in the middle of it.
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

// readLine returns a line including its line end, which the last line may lack. It returns io.EOF only if no byte is left.
func (r *Reader) readLine() ([]byte, error) {
	r.line++
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("line %d: %w: more than %d bytes", r.line, errTooLong, maxLine)
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

// readRecorded reads a line of the recorder form. Lines of other clients are skipped, but their names are collected, because the error for an
// unknown client lists them. At the end of the recording the last body ends too.
func (r *Reader) readRecorded() error {
	line, err := r.nextLine()
	if errors.Is(err, io.EOF) {
		if r.client != "" && !slices.Contains(r.clients, r.client) {
			return fmt.Errorf("%w %q; the recording has %q", errClient, r.client, r.clients)
		}
		if r.body.end(r.enqueue); len(r.queue) > 0 {
			return nil
		}
	}
	if err != nil {
		return err
	}
	var l recorded
	if err := json.Unmarshal(line, &l); err != nil {
		return fmt.Errorf("recording: line %d: %w", r.line, err)
	}
	name := clientName(l.Client)
	if !slices.Contains(r.clients, name) && len(r.clients) < maxClients {
		r.clients = append(r.clients, name)
	}
	if r.client == "" && l.Dir == dirIn {
		r.client = name
	}
	if r.closed || r.client != "" && name != r.client {
		return nil
	}
	if err := r.recorded(&l); err != nil {
		return fmt.Errorf("recording: line %d: %w", r.line, err)
	}
	return nil
}

// recorded processes a line of the selected client.
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
			return r.body.feed(piece, r.enqueue)
		}
		if len(l.Frame) == 0 {
			return nil
		}
		data := l.Frame
		var text string
		if json.Unmarshal(l.Frame, &text) == nil {
			data = []byte(text) // the writer encodes frames that aren't JSON as strings
		}
		r.enqueue(dialect.Frame{Data: data})
	case dirClose:
		r.body.end(r.enqueue)
		// A connection that was refused before any input may be retried under the same name.
		r.closed = r.hasFrames
	}
	return nil
}

// openBody processes a line of dir "open", if l is one: it ends the current body and reads the recording's head.
func (r *Reader) openBody(l *recorded) {
	if l.Dir != dirOpen {
		return
	}
	r.body.end(r.enqueue)
	var h Head
	if json.Unmarshal(l.Frame, &h) == nil && h != (Head{}) {
		r.head = h
	}
}

func (r *Reader) enqueue(f dialect.Frame) { r.queue = append(r.queue, Frame{At: r.at, Frame: f}) }

// maxClients is the limit of Reader.clients. A recorder may name a client for each of millions of connections.
const maxClients = 1000

// clientName returns the name of a connection. Recorders may use numbers as names; their JSON is then the name.
func clientName(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// readEvents reads the next bytes of raw server-sent events. At the end an event without its blank line is dropped, as the SSE specification
// requires.
func (r *Reader) readEvents() error {
	if _, err := r.in.Peek(1); err != nil {
		return err
	}
	piece, err := r.in.Peek(r.in.Buffered())
	if err != nil {
		return err
	}
	if err := r.body.feed(piece, r.enqueue); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	_, err = r.in.Discard(len(piece))
	return err
}
