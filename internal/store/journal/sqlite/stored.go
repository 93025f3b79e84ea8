package sqlite

// account is who owns conversations, by aliases.
type account struct{ tenant, owner string }

// stored are the bytes of all conversations, by owner and by tenant. What is 0 is not there.
type stored struct {
	owners  map[account]int64
	tenants map[string]int64
}

// counted is what stored holds of one log.
type counted struct {
	account
	bytes int64
}

func (s *stored) add(a account, bytes int64) {
	if s.owners[a] += bytes; s.owners[a] == 0 {
		delete(s.owners, a)
	}
	if s.tenants[a.tenant] += bytes; s.tenants[a.tenant] == 0 {
		delete(s.tenants, a.tenant)
	}
}

// count brings stored up to what a log is now. Callers hold the index's lock.
func (s *stored) count(l *log, deleted bool) {
	now := counted{account: l.account}
	if !deleted {
		now.bytes = l.size + l.live + l.about
	}
	if now != l.counted {
		s.add(l.counted.account, -l.counted.bytes)
		s.add(now.account, now.bytes)
		l.counted = now
	}
}

// countAll counts what lies in the file, but for the live rows of logs, which are counted with these.
func countAll(c *conn, logs map[string]*log) (stored, error) {
	s := stored{owners: map[account]int64{}, tenants: map[string]int64{}}
	err := c.each("SELECT tenant, owner, sum(size + length(summary)) FROM conversations GROUP BY tenant, owner", func(r row) error {
		s.add(account{r.text(0), r.text(1)}, r.int(2))
		return nil
	})
	for _, l := range logs {
		s.count(l, false)
	}
	return s, err
}

// Stored implements [journal.Journal].
func (j *Journal) Stored(tenant, owner string) (ofOwner, ofTenant int64) {
	a := account{alias(tenant), alias(owner)}
	j.index.mu.RLock()
	defer j.index.mu.RUnlock()
	return j.index.stored.owners[a], j.index.stored.tenants[a.tenant]
}
