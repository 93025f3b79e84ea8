// Damaged conversations are set apart and refused, and all others are served.

package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"modernc.org/sqlite/lib"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// A damaged conversation is quarantined: it can be deleted, but not read or written. All others are served. The gateway's own logs
// are read without their damaged chunks, because each of their records stands alone.

// advice is the next step for an operator, logged with the damage.
const advice = "restore a backup from before into another folder to read it there, then delete the conversation here"

// system reports whether id is one of the gateway's own logs.
func system(id string) bool { return journal.IsSystem(id) }

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

// Checking a whole file: everything that a gateway could read is read, decrypted and decoded.

// ErrUnclean says that the last gateway was killed. The next one recovers its write-ahead log.
var ErrUnclean = errors.New("journal: the last gateway was not stopped cleanly")

// Verify reads the store of a folder that no gateway uses, and lists the damaged conversations, each once. It writes nothing.
// If ctx ends, it returns the damage found so far with the error of ctx. Other errors wrap [ErrUnclean], journal.ErrCorrupt if
// the database file can't be read, or fs.ErrNotExist. It opens the file as immutable, so SQLite creates no other files next to
// it.
func Verify(ctx context.Context, dir string) ([]journal.DamageError, error) {
	path := filepath.Join(dir, fileName)
	have, err := inspect(path)
	if err != nil {
		return nil, err
	}
	// Only a migration could make an older file readable, and Verify writes nothing.
	if have != version {
		return nil, fmt.Errorf("%s has schema %d, only %d can be verified: %w", path, have, version, errors.ErrUnsupported)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrUnclean)
	}
	c, err := dialWith(path, "immutable=1", "query_only=on", "temp_store=memory")
	if err != nil {
		return nil, malformed(path, err)
	}
	v := &verifier{conn: c, reported: map[string]bool{}}
	err = v.checkAll(ctx)
	return v.damage, errors.Join(malformed(path, err), c.close())
}

// verifier collects the first damage of each conversation. It reads everything that the gateway could read, and deciphers it.
type verifier struct {
	*conn
	reported map[string]bool
	damage   []journal.DamageError
}

// note records err if it is about one conversation. It returns any other error.
func (v *verifier) note(err error) error {
	d, ok := errors.AsType[*journal.DamageError](err)
	if !ok {
		return err
	}
	if !v.reported[d.Conversation] {
		v.reported[d.Conversation] = true
		v.damage = append(v.damage, *d)
	}
	return nil
}

// checkAll reads every conversation. It continues after damage, and stops at any other error.
func (v *verifier) checkAll(ctx context.Context) error {
	logs, _, _, damaged, err := scan(v.conn)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		_ = v.note(d) // returns nil for damage
	}
	var ids []string
	err = v.forEach(selectSummary, func(r row) error {
		_, err := readSummary(r)
		ids = append(ids, r.text(0))
		return v.note(err)
	})
	for _, id := range ids {
		if err == nil {
			err = ctx.Err()
		}
		// A conversation is reported once, so the rest of a damaged one isn't read.
		if err == nil && !v.reported[id] {
			err = v.note(v.log(ctx, id, logs[id]))
		}
	}
	return err
}

// log reads everything stored of one conversation. recent is the log from scan, nil if it has no live rows. Blobs are
// authenticated when they are opened, so a change of any of their bytes is found.
func (v *verifier) log(ctx context.Context, id string, recent *log) error {
	l, err := load(v.conn, "id", id)
	if err != nil {
		return err
	}
	var events []event.Event
	err = v.forEach("SELECT first, last, events FROM settled WHERE conversation = ? ORDER BY last", func(r row) (err error) {
		events, err = l.decode(events[:0], r.blob(2), true, place{kind: inCompacted, firstSeq: r.int(0), lastSeq: r.int(1)}, 0)
		return errors.Join(err, ctx.Err())
	}, l.n)
	if err == nil && recent != nil {
		chunks := make([]cachedChunk, len(recent.chunks))
		for i, ch := range recent.chunks {
			chunks[i].chunk = ch
		}
		err = liveRows(v.conn, l.n, chunks, func(ch cachedChunk, blob []byte, sealed bool) (err error) {
			events, err = l.decode(events[:0], blob, sealed, ch.place(), 0)
			return errors.Join(err, ctx.Err())
		})
	}
	openAll := func(kind byte, query string) {
		if err == nil {
			err = v.forEach(query, func(r row) error {
				_, err := l.open(r.blob(2), place{kind: kind, firstSeq: r.int(1), name: r.text(0)})
				return err
			}, l.n)
		}
	}
	openAll(inKey, "SELECT key, 0, value FROM kv WHERE conversation = ?")
	openAll(inTrace, "SELECT turn, first, trace FROM traces WHERE conversation = ?")
	return err
}
