// Damaged conversations are set apart and refused, and all others are served.

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

// A damaged conversation is quarantined: it can be deleted, but not read or written. All others are served. The gateway's own logs
// are read without their damaged chunks, because each of their records stands alone.

// advice is the next step for an operator, logged with the damage.
const advice = "restore a backup from before into another folder to read it there, then delete the conversation here"

// system reports whether id is one of the gateway's own logs.
func system(id string) bool { return strings.HasPrefix(id, journal.SystemPrefix) }

// quarantine records the damage if err is about a conversation. It returns err. It is called on every error path that may see
// damaged text, and logs each conversation once.
func (j *Journal) quarantine(err error) error {
	d, ok := errors.AsType[*journal.DamageError](err)
	if !ok {
		return j.malformed(err)
	}
	if j.index.setApart(d) {
		j.log.Error("journal: a conversation is damaged and quarantined; all others are served",
			"conversation", d.Conversation, "seq", d.Seq, "error", d.Err, "file", j.path, "next", advice)
	}
	return err
}

// setApart records damage and reports whether it is the conversation's first. Later damage of the same conversation isn't
// recorded.
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

// refuse returns an error if the conversation is quarantined. The gateway's own logs are never refused, because the gateway
// couldn't run without them.
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

// malformed is the function malformed for the journal's own file.
func (j *Journal) malformed(err error) error { return malformed(j.path, err) }

// malformed adds the path and the next step if err means that the database file is damaged. It returns other errors unchanged.
func malformed(path string, err error) error {
	switch code(err) & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
	default:
		return err
	}
	// The error was wrapped before, on another path.
	if errors.Is(err, journal.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %s: %w; keep a copy of the folder, then restore the last backup into a new one (leat restore), or recover the readable part of the file (sqlite3 %s .recover)",
		journal.ErrCorrupt, path, err, path)
}
