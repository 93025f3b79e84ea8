package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
)

// alias stands for the name of a tenant or a subject where the file has to be searched for it. The name itself lies sealed in
// the summary alone: what lies open in an index leaves copies in the gaps of pages, which outlive a delete.
func alias(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// aliasAll puts aliases in place of the names that version 1 had.
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
