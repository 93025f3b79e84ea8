package data

import (
	"context"
	"encoding/json"

	"github.com/leat-dev/leat/internal/store/journal"
)

// keyPage is how many keys are read at once.
const keyPage = 256

// Collection is data of subjects that lies under keys of its own, beside the conversations. Whoever stores such data
// registers it, so that a purge finds it and an export brings it.
type Collection struct {
	// Name says what it is: the type of its lines in an export, and its name in counts.
	Name string
	// Prefix begins its keys, and those of nothing else.
	Prefix string
	// Of reports whether a key holds data of the subject.
	Of func(kv journal.KeyValue, tenant, subject string) bool
	// Private collections are no part of an export: what the gateway needs for itself.
	Private bool
}

// BySubject is an Of for values that are JSON objects with the keys tenant and subject.
func BySubject(kv journal.KeyValue, tenant, subject string) bool {
	var v struct {
		Tenant  string `json:"tenant"`
		Subject string `json:"subject"`
	}
	return json.Unmarshal(kv.Value, &v) == nil && v.Tenant == tenant && v.Subject == subject
}

// each calls f with the subject's keys, in pages.
func (c *Collection) forEach(ctx context.Context, j keyLister, tenant, subject string, f func(journal.KeyValue) error) error {
	after := ""
	for {
		page, err := j.KeysAfter(ctx, c.Prefix, after, keyPage)
		if err != nil {
			return err
		}
		for _, kv := range page {
			after = kv.Key
			if !c.Of(kv, tenant, subject) {
				continue
			}
			if err := f(kv); err != nil {
				return err
			}
		}
		if len(page) < keyPage {
			return nil
		}
	}
}
