package data

import (
	"context"

	"github.com/leat-dev/leat/internal/store/journal"
)

// The parts of the journal that this package uses, by task. Deletions and changes of conversations don't use the journal directly: they
// go through the gateway, whose writers own the logs.

// lister lists conversations, newest change first.
type lister interface {
	Conversations(ctx context.Context, q journal.Query) ([]journal.Summary, error)
}

// keyLister lists keys in pages.
type keyLister interface {
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error)
}

// exportJournal is the part of the journal that an export uses.
type exportJournal interface {
	lister
	keyLister
	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
}

// purgeJournal is the part of the journal that a purge uses.
type purgeJournal interface {
	lister
	keyLister
	Conversation(ctx context.Context, id string) (journal.Summary, error)
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
	Delete(ctx context.Context, conversation string) error
}
