package sqlite

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
