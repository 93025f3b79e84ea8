// Importing an export line by line. A repeated import adds nothing twice.

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
	// maxLine bounds a line, in bytes. The largest message fits even with every character escaped.
	maxLine = 64 << 20
	// maxImport bounds the lines of one conversation, in bytes, because all of them are in memory together.
	maxImport = 128 << 20
	// maxRefused bounds the refusals in a report. The others are only counted.
	maxRefused = 1000
)

// ErrFile means that the file is not a complete export. The wrapping error names the line and the fault.
var ErrFile = errors.New("not a complete export")

// Importing is the result of an import.
type Importing struct {
	Imported int `json:"imported"`
	// Unchanged counts conversations that an earlier import of the same lines created.
	Unchanged    int `json:"unchanged"`
	RefusedCount int `json:"refused"`
	// Refusals explains the first 1,000 refusals.
	Refusals []refusal `json:"refusals,omitempty"`
	// Skipped counts the lines that are not imported: values of collections, and the subject's messages in conversations of others.
	// They refer to conversations, users and other data of the exporting gateway.
	Skipped int `json:"skipped,omitempty"`
}

// refusal describes a conversation that was not imported.
type refusal struct {
	Conversation string `json:"conversation"`
	Reason       string `json:"reason"`
	Message      string `json:"message"`
}

// Importer reads exports. Its methods may be called from several goroutines.
type Importer struct{ gw *gateway.Gateway }

// NewImporter returns an importer.
func NewImporter(gw *gateway.Gateway) *Importer { return &Importer{gw} }

// Import reads an export and creates its conversations, each as soon as its last line has been read and checked. A conversation
// that can't be created is refused, and the import continues with the next. After an error, report counts what was done before
// it, and repeating the import adds the rest. The error wraps ErrFile if the file is at fault.
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

// input is a file that is being imported. It buffers the lines of one conversation at a time, because the gateway creates a conversation
// with all its events in one commit.
type input struct {
	m         *Importer
	ctx       context.Context
	principal gateway.Principal
	report    *Importing
	buf       *bufio.Reader

	line      int  // number of the current line, from 1, for errors
	hasHeader bool // the first line was read
	// The conversation whose lines are being read; nil between conversations.
	current *conversation
	events  []event.Event
	count   int       // its events, including those beyond maxImport
	size    int       // bytes of its event lines
	sum     hash.Hash // digest of its lines, which identifies a repeated import
	n       totals    // totals of the file so far
}

// bad returns an error that wraps ErrFile and names the current line.
func (in *input) bad(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrFile, in.line, fmt.Sprintf(format, args...))
}

// next returns the next line that is not empty. The end of the file is an error, because the last line of an export stops the
// import first. A line longer than the buffer arrives in pieces, which next joins up to maxLine.
func (in *input) next() ([]byte, error) {
	for {
		in.line++
		var line []byte
		for {
			piece, err := in.buf.ReadSlice('\n')
			line = append(line, piece...)
			if len(line) > maxLine {
				return nil, in.bad("the line is longer than %d bytes", maxLine)
			}
			if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
				break
			}
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
			case errors.Is(err, io.EOF):
				return nil, in.bad("the file ends before the last line of the export; export again")
			default:
				return nil, fmt.Errorf("import: read: %w", err)
			}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// take processes a line. isLast reports whether it is the last line of the export. A conversation is complete when a line of
// another type than event follows. The line "gone" discards the conversation before it, and the exporter didn't count its lines either.
// Lines of an unknown type are skipped, because they belong to a collection. The totals of the last line are compared with what was
// read, so a file from which lines were lost is not accepted as complete.
func (in *input) take(line []byte) (isLast bool, err error) {
	var kind struct {
		Type    string `json:"type"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return false, in.bad("not a JSON object")
	}
	if !in.hasHeader {
		switch {
		case kind.Type != lineExport:
			return false, in.bad("an export begins with a line of the type %q", lineExport)
		case kind.Version < 1 || kind.Version > version:
			return false, in.bad("the export has version %d; this gateway reads versions up to %d", kind.Version, version)
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
			return false, in.bad("invalid conversation")
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
			return false, in.bad("the export should have %d conversations and %d events, but the file has %d and %d", e.Conversations, e.Events, in.n.Conversations, in.n.Events)
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

// event adds an event to the current conversation. Beyond maxImport it only counts, so that the totals of the last line still
// match, and finish refuses the conversation.
func (in *input) event(line []byte) error {
	if in.current == nil {
		return in.bad("event without a conversation before it")
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
		return in.bad("invalid event")
	}
	in.events = append(in.events, *e.Event)
	in.sum.Write([]byte{'\n'})
	in.sum.Write(line)
	return nil
}

// finish imports the current conversation, if there is one, and records the result in the report. A refusal is not an error, so that the
// other conversations are imported. While the gateway drains it is one, because every later conversation would be refused too.
func (in *input) finish() error {
	c := in.current
	if c == nil {
		return nil
	}
	in.current = nil
	var added bool
	var err error
	if in.size > maxImport {
		err = &gateway.Rejection{Reason: gateway.ReasonTooLarge, Message: fmt.Sprintf("the conversation is larger than %d bytes", maxImport)}
	} else {
		added, err = in.m.gw.Import(in.ctx, in.principal, gateway.Imported{Summary: c.summary(), Events: in.events, Digest: hex.EncodeToString(in.sum.Sum(nil))})
	}
	in.events = nil
	r, isRefused := errors.AsType[*gateway.Rejection](err)
	switch {
	case isRefused && r.Reason != gateway.ReasonDraining:
		in.report.RefusedCount++
		if len(in.report.Refusals) < maxRefused {
			in.report.Refusals = append(in.report.Refusals, refusal{c.ID, r.Reason, r.Message})
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
