// Summaries, and listings of them by tenant, owner and time.

package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/internal/store/journal"
)

// selectSummary selects the columns that readSummary expects.
const selectSummary = "SELECT id, epoch, head, settled, trimmed, summary, key, n, updated FROM conversations JOIN secrets USING (n)"

// readSummary returns a summary. With a [*journal.DamageError] it returns the columns that aren't sealed. The fields that the
// journal maintains come from the row, whatever the sealed summary contains.
func readSummary(r row) (journal.Summary, error) {
	var s journal.Summary
	sec, err := secretOf(r.int(7), r.blob(6))
	var text []byte
	if err == nil {
		text, err = sec.open(r.blob(5), place{kind: inSummary})
	}
	if err == nil {
		if err = json.Unmarshal(text, &s); err != nil {
			err = fmt.Errorf("summary: %w", err)
		}
	}
	if err != nil {
		// Only a summary that was read completely is shown. Updated is known from its column, by which listings are sorted.
		s, err = journal.Summary{Updated: r.int(8)}, &journal.DamageError{Conversation: r.text(0), Err: err}
	}
	s.ID, s.Epoch, s.Compacted, s.Trimmed = r.text(0), r.text(1), r.int(3), r.int(4)
	// The column is only updated by restores. The head of a log with live rows is in the index.
	s.Head = max(r.int(2), s.Compacted, s.Trimmed)
	return s, err
}

// existing returns a log as load does. If the conversation doesn't exist, the error is that of absent.
func existing(c *conn, id string) (*log, error) {
	l, err := load(c, "id", id)
	if err == nil && l == nil {
		err = absent(c, id)
	}
	return l, err
}

// Conversation implements [journal.Journal].
func (j *Journal) Conversation(ctx context.Context, id string) (journal.Summary, error) {
	var s journal.Summary
	v, ok := j.index.view(id, 1<<62) // before the snapshot, so that the head never goes back
	err := j.readTx(ctx, func(c *conn) error {
		r, err := c.queryRow(selectSummary+" WHERE id = ?", id)
		if err != nil {
			return err
		}
		if r == nil {
			return absent(c, id)
		}
		s, err = readSummary(r)
		return err
	})
	if err != nil {
		return journal.Summary{}, fmt.Errorf("conversation %s: %w", id, j.quarantine(err))
	}
	if ok {
		s.Head = max(s.Head, v.head)
	}
	return s, nil
}

// Conversations implements [journal.Journal]. It never blocks the writer.
func (j *Journal) Conversations(ctx context.Context, q journal.Query) ([]journal.Summary, error) {
	query, args := listing(q)
	for {
		// The heads of logs with live rows are in memory, by ids that only the file has. If a log was dropped from memory after the
		// snapshot, its head in the snapshot would be too old, so the list is built again.
		drops := j.index.drops()
		var summaries []journal.Summary
		err := j.readTx(ctx, func(c *conn) error {
			return c.forEach(query, func(r row) error {
				s, err := readSummary(r)
				if err != nil { // the selection is known, so a purge of the owner still finds the conversation
					_ = j.quarantine(err)
					s.Tenant, s.Owner = q.Tenant, q.Owner
				}
				summaries = append(summaries, s)
				return nil
			}, args...)
		})
		if err != nil {
			return nil, fmt.Errorf("conversations: %w", j.malformed(err))
		}
		for i := range summaries {
			if v, ok := j.index.view(summaries[i].ID, 1<<62); ok {
				summaries[i].Head = max(summaries[i].Head, v.head)
			}
		}
		if j.index.drops() == drops {
			return summaries, nil
		}
	}
}

// listing builds the query for a list. An index provides the order for each combination of conditions, so a page costs as much
// as its length, not as the number of conversations.
func listing(q journal.Query) (string, []any) {
	var conditions []string
	var args []any
	add := func(cond string, values ...any) {
		conditions = append(conditions, cond)
		args = append(args, values...)
	}
	if q.Tenant != "" {
		add("tenant = ?", alias(q.Tenant))
	}
	if q.Owner != "" {
		add("owner = ?", alias(q.Owner))
	}
	if q.IDs != nil {
		ids, _ := json.Marshal(q.IDs) // never fails for strings; one parameter, because SQLite limits their number
		add("id IN (SELECT value FROM json_each(?))", string(ids))
	}
	if q.Unfinished {
		add("unfinished > 0")
	}
	if !q.System {
		add("NOT (id >= ? AND id < ?)", journal.SystemPrefix, after(journal.SystemPrefix))
	}
	if q.BeforeUpdated != 0 || q.BeforeID != "" {
		// SQLite compares the pair as a whole, so a page continues correctly between conversations with the same Updated.
		add("(updated, id) < (?, ?)", q.BeforeUpdated, q.BeforeID)
	}
	query := selectSummary
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	query += " ORDER BY updated DESC, id DESC"
	if q.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, q.Limit)
	}
	return query, args
}

// account is an owner and its tenant, as aliases.
type account struct{ tenant, owner string }

// totals are the bytes of all conversations, by owner and by tenant. Zero totals are removed. They are kept in memory, because
// quota checks happen on every message.
type totals struct {
	owners  map[account]int64
	tenants map[string]int64
}

// share is the part of the totals that one log contributes. It is remembered to subtract it when the log changes or gets
// another owner.
type share struct {
	account
	bytes int64
}

// add adds bytes, which may be negative, to an account and its tenant.
func (s *totals) add(a account, bytes int64) {
	if s.owners[a] += bytes; s.owners[a] == 0 {
		delete(s.owners, a)
	}
	if s.tenants[a.tenant] += bytes; s.tenants[a.tenant] == 0 {
		delete(s.tenants, a.tenant)
	}
}

// count updates the totals for one log. The caller holds the index's lock. It replaces the log's previous share, so it may be
// called at any time.
func (s *totals) count(l *log, deleted bool) {
	current := share{account: l.account}
	if !deleted {
		current.bytes = l.size + l.liveBytes + l.about
	}
	if current != l.share {
		s.add(l.share.account, -l.share.bytes)
		s.add(current.account, current.bytes)
		l.share = current
	}
}

// countAll counts everything in the file except live rows, which are counted with their logs. It runs once per opening of the
// file.
func countAll(c *conn, logs map[string]*log) (totals, error) {
	s := totals{owners: map[account]int64{}, tenants: map[string]int64{}}
	err := c.forEach("SELECT tenant, owner, sum(size + length(summary)) FROM conversations GROUP BY tenant, owner", func(r row) error {
		s.add(account{r.text(0), r.text(1)}, r.int(2))
		return nil
	})
	for _, l := range logs {
		s.count(l, false)
	}
	return s, err
}

// StoredBytes implements [journal.Journal].
func (j *Journal) StoredBytes(tenant, owner string) (ofOwner, ofTenant int64) {
	a := account{alias(tenant), alias(owner)}
	j.index.mu.RLock()
	defer j.index.mu.RUnlock()
	return j.index.usage.owners[a], j.index.usage.tenants[a.tenant]
}
