package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite/lib"

	"github.com/leat-dev/leat/internal/store/journal"
)

// A conversation that is found damaged is quarantined: nothing of it is read or written any more, except that it can be
// deleted. All others are served. A log of the gateway's own is not refused, since each of its records stands for itself:
// only the damaged chunks are left out when it is read.

// advice is what an operator can do about a damaged conversation.
const advice = "restore a backup from before into another folder to read it there, then delete the conversation here"

func system(id string) bool { return strings.HasPrefix(id, journal.SystemPrefix) }

// quarantine notes what an error says about a damaged conversation, and returns the error.
func (j *Journal) quarantine(err error) error {
	d, ok := errors.AsType[*journal.DamageError](err)
	if !ok {
		return j.malformed(err)
	}
	if j.index.setApart(d) {
		j.log.Error("journal: a conversation is damaged; it is set apart and all others are served",
			"conversation", d.Conversation, "seq", d.Seq, "error", d.Err, "file", j.path, "next", advice)
	}
	return err
}

// setApart reports whether the damage is the first that is known of its conversation.
func (x *index) setApart(d *journal.DamageError) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.damaged[d.Conversation] != nil {
		return false
	}
	if x.damaged == nil {
		x.damaged = map[string]*journal.DamageError{}
	}
	x.damaged[d.Conversation] = d
	return true
}

// refuse returns why a conversation is not read or written; nil if it is.
func (x *index) refuse(id string) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if d := x.damaged[id]; d != nil && !system(id) {
		return d
	}
	return nil
}

// Damaged implements [journal.DamageReporter].
func (j *Journal) Damaged() []journal.DamageError {
	j.index.mu.RLock()
	defer j.index.mu.RUnlock()
	damage := make([]journal.DamageError, 0, len(j.index.damaged))
	for _, d := range j.index.damaged {
		damage = append(damage, *d)
	}
	slices.SortFunc(damage, func(a, b journal.DamageError) int { return cmp.Compare(a.Conversation, b.Conversation) })
	return damage
}

func (j *Journal) malformed(err error) error { return malformed(j.path, err) }

// malformed adds the file's name and the next step to an error of SQLite that means that the file itself is damaged. Other
// errors are returned as they are.
func malformed(path string, err error) error {
	switch code(err) & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
	default:
		return err
	}
	if errors.Is(err, journal.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %s: %w; keep a copy of the folder, then restore the last backup into a new one (leat restore), or recover what is left of the file (sqlite3 %s .recover)",
		journal.ErrCorrupt, path, err, path)
}
