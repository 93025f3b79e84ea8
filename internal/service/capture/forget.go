package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Forget takes all that is kept of a conversation out of the files, in place, and keeps nothing more of its turns that were
// begun. It has reached the disk when Forget returns; a repeat goes on where an error stopped it.
func (l *Log) Forget(ctx context.Context, conversation string) error {
	if l == nil {
		return nil
	}
	err := l.do(ctx, func() error { return l.files.forget(conversation) })
	if err != nil {
		return fmt.Errorf("rawlog: forget: %w", err)
	}
	return nil
}

func (f *files) forget(conversation string) error {
	gone := map[*file]map[uint64]bool{}
	for k := range f.convs[conversation] {
		k.forgotten = true
		for one := range k.in {
			if gone[one] == nil {
				gone[one] = map[uint64]bool{}
			}
			gone[one][k.n] = true
		}
	}
	var errs []error
	for one, turns := range gone {
		errs = append(errs, blank(one.path, turns))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for k := range f.convs[conversation] {
		for one := range k.in {
			delete(one.turns, k.n)
		}
		f.unknow(k)
	}
	return nil
}

// blank overwrites the payloads of turns in a file. The records that say whose they are come last, so that a repeat still
// finds the others.
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
