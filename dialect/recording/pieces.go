package recording

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/sse"
)

// pieces reassembles the frames of a body that was recorded in the pieces in which it arrived. The body is JSON lines if it begins
// with { or [, and server-sent events otherwise.
type pieces struct {
	form    form
	sse     sse.Reader
	partial []byte // the incomplete last line, or the white space before the form is known
}

// feed appends a piece to the body and calls f with each frame that it completes.
func (p *pieces) feed(b []byte, f func(dialect.Frame)) error {
	if p.form == "" {
		p.partial = append(p.partial, b...)
		b = bytes.TrimLeft(bytes.TrimPrefix(p.partial, bom), " \t\r\n")
		if len(b) == 0 {
			return nil
		}
		p.form, p.partial = formSSE, nil
		if b[0] == '{' || b[0] == '[' {
			p.form = formLines
		}
	}
	if p.form == formSSE {
		return p.sse.Feed(b, func(e sse.Event) error {
			f(dialect.Frame{Event: e.Name, ID: e.ID, Data: bytes.Clone(e.Data)})
			return nil
		})
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if p.partial = append(p.partial, b...); len(p.partial) > maxLine {
				return errTooLong
			}
			return nil
		}
		p.line(b[:i], f)
		b = b[i+1:]
	}
}

// line passes one line on as a frame.
func (p *pieces) line(b []byte, f func(dialect.Frame)) {
	if line := bytes.TrimSpace(append(p.partial, b...)); len(line) > 0 {
		f(dialect.Frame{Data: line})
	}
	p.partial = nil
}

// end passes the last line to f if it is complete JSON, and resets p for the next body.
func (p *pieces) end(f func(dialect.Frame)) {
	if p.form == formLines && json.Valid(p.partial) {
		p.line(nil, f)
	}
	*p = pieces{}
}
