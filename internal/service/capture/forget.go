package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Forget overwrites all records of a conversation with zeros, in place, and drops later records of its open turns. The change
// is durable when Forget returns. After an error a repeated call does the rest.
func (l *Log) Forget(ctx context.Context, conversation string) error {
	if l == nil {
		return nil
	}
	err := l.do(ctx, func() error { return l.ring.forget(conversation) })
	if err != nil {
		return fmt.Errorf("capture: forget: %w", err)
	}
	return nil
}

// forget removes a conversation. It marks the turns first, so that no record is added while segments are blanked. The index is
// kept until all segments are done, because a repeated call needs it after an error.
func (f *ring) forget(conversation string) error {
	turnsBySegment := map[*segment]map[uint64]bool{}
	for k := range f.conversations[conversation] {
		k.forgotten = true
		for seg := range k.segments {
			if turnsBySegment[seg] == nil {
				turnsBySegment[seg] = map[uint64]bool{}
			}
			turnsBySegment[seg][k.number] = true
		}
	}
	var errs []error
	for seg, turns := range turnsBySegment {
		errs = append(errs, blank(seg.path, turns))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for k := range f.conversations[conversation] {
		for seg := range k.segments {
			delete(seg.turns, k.number)
		}
		f.removeTurn(k)
	}
	return nil
}

// blank overwrites the payloads of turns in a file. Begin records, which say which conversation a turn belongs to, are blanked
// last: after a crash in between, the next process can still find the other records.
func blank(path string, turns map[uint64]bool) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// The payload is overwritten before the record is marked as blank, so a crash in between leaves a record with a wrong
	// checksum, which readers skip.
	for _, begins := range []bool{false, true} {
		for at := 0; ; {
			h, payload, size, ok := next(b[at:])
			if !ok {
				break
			}
			if turns[h.turn] && (h.kind == recordBegin) == begins {
				clear(payload)
				if _, err := file.WriteAt(payload, int64(at+headerSize)); err != nil {
					return err
				}
				if _, err := file.WriteAt([]byte{recordBlank}, int64(at+8)); err != nil {
					return err
				}
			}
			at += size
		}
		if err := file.Sync(); err != nil {
			return err
		}
	}
	return nil
}
