package recording

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/sse"
)

// pieces puts the frames of a body together that was recorded in the pieces in which it came: server-sent events, or, where it
// begins as JSON does, lines.
type pieces struct {
	form    Form
	sse     sse.Reader
	partial []byte // of lines, what does not end yet; of anything, what comes before the form shows
}

// feed takes a piece and calls f with the frames that it completes.
func (p *pieces) feed(b []byte, f func(dialect.Frame)) error {
	if p.form == "" {
		p.partial = append(p.partial, b...)
		b = bytes.TrimLeft(bytes.TrimPrefix(p.partial, bom), " \t\r\n")
		if len(b) == 0 {
			return nil
		}
		p.form, p.partial = SSE, nil
		if b[0] == '{' || b[0] == '[' {
			p.form = Lines
		}
	}
	if p.form == SSE {
		return p.sse.Feed(b, func(e sse.Event) error {
			f(dialect.Frame{Event: e.Name, ID: e.ID, Data: bytes.Clone(e.Data)})
			return nil
		})
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if p.partial = append(p.partial, b...); len(p.partial) > maxLine {
				return ErrTooLong
			}
			return nil
		}
		p.line(b[:i], f)
		b = b[i+1:]
	}
}

func (p *pieces) line(b []byte, f func(dialect.Frame)) {
	if line := bytes.TrimSpace(append(p.partial, b...)); len(line) > 0 {
		f(dialect.Frame{Data: line})
	}
	p.partial = nil
}

// end takes the body's last line, where it is whole, and begins anew.
func (p *pieces) end(f func(dialect.Frame)) {
	if p.form == Lines && json.Valid(p.partial) {
		p.line(nil, f)
	}
	*p = pieces{}
}
