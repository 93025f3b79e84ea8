package data

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

const (
	// maxLine bounds a line, in bytes: a message of the largest size with every character escaped.
	maxLine = 64 << 20
	// maxImport bounds the lines of one conversation, in bytes; they are in memory at once.
	maxImport = 128 << 20
	// maxRefused bounds the refusals that are told one by one.
	maxRefused = 1000
)

// ErrFile says that what is to be imported is no whole export; the text says where and why.
var ErrFile = errors.New("not a whole export")

// Importing is what an import has done.
type Importing struct {
	Imported int `json:"imported"`
	// Unchanged counts conversations that the same import brought before.
	Unchanged    int `json:"unchanged"`
	RefusedCount int `json:"refused"`
	// Refusals tell why, the first thousand of them.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Skipped counts lines of other data, which is not imported: it belongs to the gateway that counted it.
	Skipped int `json:"skipped,omitempty"`
}

// Refusal is a conversation that was not imported.
type Refusal struct {
	Conversation string `json:"conversation"`
	Reason       string `json:"reason"`
	Message      string `json:"message"`
}

// Importer reads exports. Its methods may be called from several goroutines.
type Importer struct{ gw *gateway.Gateway }

// NewImporter returns an importer.
func NewImporter(gw *gateway.Gateway) *Importer { return &Importer{gw} }

// Import reads an export and makes its conversations, each when its last line was read and all of it was checked. One
// that can't be made is refused, and the others go on. After an error, which wraps ErrFile where the file is at fault,
// Importing says what was done until then: a repeat brings the rest.
func (m *Importer) Import(ctx context.Context, principal gateway.Principal, r io.Reader) (report Importing, err error) {
	if err := gateway.Decide(principal, gateway.ActionAdmin, nil); err != nil {
		return report, err
	}
	in := &input{m: m, ctx: ctx, principal: principal, report: &report, buf: bufio.NewReaderSize(r, 64<<10)}
	for {
		line, err := in.next()
		if err != nil {
			return report, err
		}
		isLast, err := in.take(line)
		if isLast || err != nil {
			return report, err
		}
	}
}

// input is a file that is being read.
type input struct {
	m         *Importer
	ctx       context.Context
	principal gateway.Principal
	report    *Importing
	buf       *bufio.Reader

	line      int
	hasHeader bool
	// The conversation whose lines are being read.
	current *conversation
	events  []event.Event
	count   int // of its events, also of those that are too many
	size    int
	sum     hash.Hash
	n       Counts
}

func (in *input) bad(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrFile, in.line, fmt.Sprintf(format, args...))
}

// next reads a line that is not empty.
func (in *input) next() ([]byte, error) {
	for {
		in.line++
		var line []byte
		for {
			piece, err := in.buf.ReadSlice('\n')
			line = append(line, piece...)
			if len(line) > maxLine {
				return nil, in.bad("it is longer than %d bytes", maxLine)
			}
			if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
				break
			}
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
			case errors.Is(err, io.EOF):
				return nil, in.bad("it ends without its last line; the file was cut short")
			default:
				return nil, fmt.Errorf("import: read: %w", err)
			}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// take takes a line; done says that it was the last.
func (in *input) take(line []byte) (isLast bool, err error) {
	var kind struct {
		Type    string `json:"type"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return false, in.bad("it is no JSON object")
	}
	if !in.hasHeader {
		switch {
		case kind.Type != lineExport:
			return false, in.bad("an export begins with a line of the type %q", lineExport)
		case kind.Version < 1 || kind.Version > Version:
			return false, in.bad("the export has version %d; this gateway knows %d", kind.Version, Version)
		}
		in.hasHeader = true
		return false, nil
	}
	switch kind.Type {
	case lineConversation:
		if err := in.finish(); err != nil {
			return false, err
		}
		in.current = &conversation{}
		in.events, in.count, in.size, in.sum = nil, 0, 0, sha256.New()
		if err := json.Unmarshal(line, in.current); err != nil {
			return false, in.bad("it is no conversation")
		}
		in.sum.Write(line)
		in.n.Conversations++
		return false, nil
	case lineEvent:
		return false, in.event(line)
	case lineGone:
		in.n.Conversations--
		in.n.Events -= in.count
		in.current = nil
		return false, nil
	case lineEnd:
		if err := in.finish(); err != nil {
			return false, err
		}
		var e end
		if err := json.Unmarshal(line, &e); err != nil || e.Conversations != in.n.Conversations || e.Events != in.n.Events {
			return false, in.bad("it counts %d conversations and %d events, there were %d and %d", e.Conversations, e.Events, in.n.Conversations, in.n.Events)
		}
		return true, nil
	case lineExport:
		return false, in.bad("a second export begins")
	}
	if err := in.finish(); err != nil {
		return false, err
	}
	in.report.Skipped++
	return false, nil
}

func (in *input) event(line []byte) error {
	if in.current == nil {
		return in.bad("an event stands before its conversation")
	}
	in.n.Events++
	in.count++
	if in.size += len(line); in.size > maxImport {
		in.events = nil
		return nil
	}
	var e struct {
		Event *event.Event `json:"event"`
	}
	if err := json.Unmarshal(line, &e); err != nil || e.Event == nil {
		return in.bad("it is no event")
	}
	in.events = append(in.events, *e.Event)
	in.sum.Write([]byte{'\n'})
	in.sum.Write(line)
	return nil
}

// finish makes the conversation whose lines were read.
func (in *input) finish() error {
	c := in.current
	if c == nil {
		return nil
	}
	in.current = nil
	var added bool
	var err error
	if in.size > maxImport {
		err = &gateway.Rejection{Reason: gateway.ReasonTooLarge, Message: fmt.Sprintf("its lines take more than %d bytes", maxImport)}
	} else {
		added, err = in.m.gw.Import(in.ctx, in.principal, gateway.Imported{Summary: c.summary(), Events: in.events, Digest: hex.EncodeToString(in.sum.Sum(nil))})
	}
	in.events = nil
	var r *gateway.Rejection
	switch {
	case errors.As(err, &r) && r.Reason != gateway.ReasonDraining:
		in.report.RefusedCount++
		if len(in.report.Refusals) < maxRefused {
			in.report.Refusals = append(in.report.Refusals, Refusal{c.ID, r.Reason, r.Message})
		}
	case err != nil:
		return err
	case added:
		in.report.Imported++
	default:
		in.report.Unchanged++
	}
	return nil
}
