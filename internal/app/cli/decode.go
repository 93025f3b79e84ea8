// The command decode: the operations that a decoder makes of a stream, for people who write a dialect.

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/cli/console"
	"github.com/leat-dev/leat/transcript"
)

// decodeCmd decodes a recorded stream offline, without a gateway. Authors of dialects and agents
// use it to check how Leat decodes their streams.
type decodeCmd struct {
	Dialect string `short:"d" required:"" help:"Dialect of the stream; leat dialects lists them." placeholder:"D"`
	As      string `enum:"text,transcript,events" default:"text" help:"text: the visible text of the assistant's messages, separated by blank lines; transcript: one JSON document (docs/transcript.schema.json); events: canonical events, one on each line."`
	Client  string `help:"Connection to decode from a recording of several. Default: the first." placeholder:"C"`
	File    string `arg:"" optional:"" help:"Raw SSE bytes, JSON lines, or {t,c,dir,frame} lines of a recording. Default or -: standard input."`
}

// Run decodes the input and prints the result in the form of --as. Events are flushed one by one, since the input may
// be a live stream. A damaged stream is still printed up to the damage, and the error follows. The exit status
// distinguishes a stream that was cut short (3), which means that the recording is incomplete, from one that can't be
// decoded (1).
func (c *decodeCmd) Run(a *app) error {
	d, err := a.dialects.Lookup(c.Dialect)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	// name is the prefix of errors and notes.
	in, name := a.in, "standard input"
	if c.File != "" && c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, c.File
	}
	output := bufio.NewWriter(a.terminalSafe(a.stdout))
	dec := newDecoding(d, func(e *event.Event) error { return nil })
	if c.As == "events" {
		dec.onEvent = func(e *event.Event) error {
			b, err := e.AppendJSON(output.AvailableBuffer())
			if err != nil {
				return err
			}
			if _, err = output.Write(append(b, '\n')); err != nil {
				return err
			}
			return output.Flush() // the input may be a live stream
		}
	}
	// Print what was decoded, also if an error follows.
	err = dec.decodeAll(in, c.Client)
	if c.Client == "" && len(dec.clients) > 1 {
		fmt.Fprintf(a.stderr, "%s: decoded connection %[3]s of %[2]d; use --client for another: %[4]s\n", name, len(dec.clients), console.Clean(dec.client), console.Clean(strings.Join(dec.clients, ", ")))
	}
	switch c.As {
	case "text":
		err = errors.Join(dec.text(output), err)
	case "transcript":
		err = errors.Join(dec.document(output, errors.Is(err, dialect.ErrCutShort)), err)
	}
	err = errors.Join(err, output.Flush())
	switch {
	case errors.Is(err, dialect.ErrCutShort):
		return fmt.Errorf("%s: %w", name, errCut)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// decoding decodes a recording into a transcript, like a gateway with a single turn. Ids are reproducible: the first
// turn is t1, messages and further turns are id1, id2 and so on. So outputs of two versions can be compared with
// diff.
type decoding struct {
	dialect dialect.Dialect
	onEvent func(*event.Event) error
	mapper  *dialect.Mapper
	turns   int
	fold    transcript.Transcript
	clients []string // connections in the recording
	client  string   // the decoded one
}

// firstTurn is the id of the turn that the stream belongs to, unless the stream itself starts others.
const firstTurn = "t1"

// newDecoding returns a decoding that calls onEvent for each event after the transcript has applied it. The mapper is
// flat: further turns of the upstream become separate turns, since a recording may contain a whole connection with
// several.
func newDecoding(d dialect.Dialect, onEvent func(*event.Event) error) *decoding {
	dec := &decoding{dialect: d, onEvent: onEvent}
	ids := 0
	dec.mapper = dialect.NewMapper(firstTurn, func() string { ids++; return "id" + strconv.Itoa(ids) })
	dec.mapper.Flat = true
	return dec
}

// decodeAll decodes to the end of the input. Its error wraps dialect.ErrCutShort if the stream stopped without its
// format's end. An input without a single frame counts as cut short, too: an agent that sends nothing has not
// finished its answer.
//
// Events get the time of their frame in the recording, or 0 if the input has no times. An error ends the decoding,
// but the text that the decoder has buffered by then is released first, so that the output contains everything that
// arrived.
func (d *decoding) decodeAll(in io.Reader, client string) error {
	decoder := d.dialect.Decoder()
	// Some decoders need the requests of the client before the first frame.
	if s, ok := decoder.(sender); ok {
		if err := feedSent(in, client, s); err != nil {
			return err
		}
	}
	r, err := recording.NewReader(in, client)
	if errors.Is(err, io.EOF) {
		return dialect.ErrCutShort // not a single frame
	}
	if err != nil {
		return err
	}
	at := int64(0)
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(d.release(decoder, at), err)
		}
		if f.At > 0 {
			at = f.At
		}
		ops, err := decoder.Decode(f.Frame)
		if err := errors.Join(d.take(ops, at), err); err != nil {
			return errors.Join(d.release(decoder, at), err)
		}
	}
	// The connections are only known at the end, because any line may name another one.
	d.clients, d.client = r.Clients(), r.Client()
	ops, err := decoder.Close()
	return errors.Join(d.take(ops, at), err)
}

// release applies the operations that a decoder has buffered when its stream breaks. The decoder must not be used
// afterwards.
func (d *decoding) release(decoder dialect.Decoder, at int64) error {
	ops, _ := decoder.Close() // its error only repeats that the stream broke
	return d.take(ops, at)
}

// take maps operations to events and folds them. If Map fails, it has mapped the operations before the wrong one,
// which are folded as well.
func (d *decoding) take(ops []event.Event, at int64) error {
	if len(ops) == 0 {
		return nil
	}
	events, err := d.mapper.Map(ops, at)
	for i := range events {
		if err := d.add(events[i]); err != nil {
			return err
		}
	}
	return err
}

// add numbers an event and folds it. The first turn starts with its first event, because a recording may contain no turn.
func (d *decoding) add(e event.Event) error {
	if e.Turn == firstTurn && d.turns == 0 {
		d.turns = 1
		if err := d.add(event.Event{At: e.At, Type: event.TurnStart, Turn: firstTurn}); err != nil {
			return err
		}
	}
	e.Seq = d.fold.Seq + 1
	if err := d.fold.Apply(&e); err != nil {
		return err
	}
	return d.onEvent(&e)
}

// text writes the visible text of each message of the assistant, in the order of the messages. Messages without
// visible text, such as those with tool calls only, are left out.
func (d *decoding) text(w io.Writer) error {
	var texts []string
	for _, m := range d.fold.Messages {
		if m.Role != event.Assistant {
			continue
		}
		if v := m.Visible(); v != "" {
			texts = append(texts, v)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(w, strings.Join(texts, event.JoinBlank))
	return err
}

// document writes the transcript as a JSON document, as docs/transcript.schema.json describes it. Lists are never
// null. HTML characters stay as they are, because the document is for files and terminals.
func (d *decoding) document(w io.Writer, cutShort bool) error {
	s := d.fold.Snapshot(0)
	doc := struct {
		Dialect  string                `json:"dialect"`
		CutShort bool                  `json:"cutShort"`
		Turns    []*transcript.Turn    `json:"turns"`
		Messages []*transcript.Message `json:"messages"`
	}{d.dialect.Name, cutShort, append([]*transcript.Turn{}, s.Turns...), append([]*transcript.Message{}, s.Messages...)}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// sender is implemented by decoders that tell a client's own turns on a shared connection from those of others by the
// client's requests.
type sender interface{ SawRequest(frame []byte) }

// feedSent passes a recorded client's requests to a decoder and rewinds the input. It reads all requests before the first frame is decoded,
// because turns of other sessions may come before the client's first request. Inputs that can't be read twice, such as pipes, are left as
// they are. If client is empty, it is the first one that received a frame.
func feedSent(in io.Reader, client string, to sender) error {
	s, ok := in.(io.Seeker)
	if !ok {
		return nil
	}
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil // a pipe
	}
	var requests []sentLine
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		var l sentLine
		// Only recordings contain requests; raw bytes of a stream have none, and the decoder does without them.
		if len(bytes.TrimSpace(line)) > 0 && (json.Unmarshal(line, &l) != nil || l.Dir == "") {
			break // another format, or a damaged line, which decoding reports
		}
		switch name := l.client(); {
		case l.Dir == "out" && len(l.Frame) <= maxRequest:
			requests = append(requests, l)
		// recording.NewReader chooses the same client: the first that received a frame.
		case l.Dir == "in" && client == "":
			client = name
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	for i := range requests {
		if requests[i].client() == client {
			to.SawRequest(requests[i].Frame)
		}
	}
	_, err = s.Seek(start, io.SeekStart)
	return err
}

// maxRequest is the largest request that is examined, in bytes. Only requests with files are larger.
const maxRequest = 64 << 10

// sentLine is a line of a recording.
type sentLine struct {
	Client json.RawMessage `json:"c"`
	Dir    string          `json:"dir"`
	Frame  json.RawMessage `json:"frame"`
}

// client returns the name of the connection. A recording may have a string or a number, which is named by its digits.
func (l *sentLine) client() string {
	var s string
	if json.Unmarshal(l.Client, &s) == nil {
		return s
	}
	return string(l.Client)
}
