package data

import (
	"context"
	"encoding/json"

	"github.com/leat-dev/leat/internal/store/journal"
)

// keyPage is the number of keys that are read at once. A purge also deletes at most that many in one commit.
const keyPage = 256

// Collection describes data of subjects that is stored under its own keys, outside conversations. The package that stores the
// data registers it, so that purges remove it and exports include it.
type Collection struct {
	// Name is the type of the collection's lines in an export, and its name in the counts of a purge.
	Name string
	// Prefix is the prefix of its keys. No other data may use it.
	Prefix string
	// Of reports whether a key holds data of the subject.
	Of func(kv journal.KeyValue, tenant, subject string) bool
	// Private excludes the collection from exports, because the gateway uses it only internally.
	Private bool
}

// BySubject is a [Collection.Of] for values that are JSON objects with the keys tenant and subject. A value in another form
// belongs to no subject, so a purge keeps it.
func BySubject(kv journal.KeyValue, tenant, subject string) bool {
	var v struct {
		Tenant  string `json:"tenant"`
		Subject string `json:"subject"`
	}
	return json.Unmarshal(kv.Value, &v) == nil && v.Tenant == tenant && v.Subject == subject
}

// forEach calls f for each key of the subject, a page at a time. It stops at the first error. f may delete the keys it got. It reads
// every key of the collection, because keys don't contain names; purges and exports are rare enough for that.
func (c *Collection) forEach(ctx context.Context, j keyLister, tenant, subject string, f func(journal.KeyValue) error) error {
	for kv, err := range journal.EachKey(ctx, j.KeysAfter, c.Prefix, "", keyPage) {
		if err != nil {
			return err
		}
		if !c.Of(kv, tenant, subject) {
			continue
		}
		if err := f(kv); err != nil {
			return err
		}
	}
	return nil
}
