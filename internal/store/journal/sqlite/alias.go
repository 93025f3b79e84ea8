package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
)

// alias returns the hash under which the file is searched for a tenant or a subject. The name itself is only in the sealed
// summary: an index leaves copies of its keys in free space, and these outlive a delete. Tenants and subjects are often mail
// addresses, so they must not survive a delete in any form that can be read.
func alias(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// aliasAll replaces the plain names of version 1 by aliases. It is part of a migration and runs in its transaction.
func aliasAll(c *conn) error {
	type names struct {
		n             int64
		tenant, owner string
	}
	var rows []names
	err := c.forEach("SELECT n, tenant, owner FROM conversations WHERE tenant <> '' OR owner <> ''", func(r row) error {
		rows = append(rows, names{r.int(0), r.text(1), r.text(2)})
		return nil
	})
	for _, v := range rows {
		if err == nil {
			err = c.exec("UPDATE conversations SET tenant = ?, owner = ? WHERE n = ?", alias(v.tenant), alias(v.owner), v.n)
		}
	}
	return err
}
