package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// List returns the conversations that the principal may read: its own and those that are shared with it, newest first. before
// is the last conversation of the previous page, or nil for the first page. If limit is 0, there is no limit.
// Conversations that are being deleted, and unlisted ones, are left out. It reads further pages of the journal until
// limit conversations are found, because a page may contain only those that the principal can't read.
func (g *Gateway) List(ctx context.Context, p Principal, before *journal.Summary, limit int) ([]journal.Summary, error) {
	if err := Decide(p, ActionList, nil); err != nil {
		return nil, err
	}
	queries := []journal.Query{{Limit: limit}}
	if !p.Admin {
		ids, err := sharedWith(ctx, g.journal, p)
		if err != nil {
			return nil, JournalError("list conversations", err)
		}
		queries[0].Tenant, queries[0].Owner = p.Tenant, p.Subject
		if len(ids) > 0 {
			queries = append(queries, journal.Query{Limit: limit, IDs: ids})
		}
	}
	half, err := g.journal.Keys(ctx, journalkey.Deleting("")) // usually none
	if err != nil {
		return nil, JournalError("list conversations", err)
	}
	deleting := map[string]bool{}
	for _, kv := range half {
		deleting[strings.TrimPrefix(kv.Key, journalkey.Deleting(""))] = true
	}
	summaries := []journal.Summary{}
	for {
		page, hasMore, err := readPage(ctx, g.journal, queries, before, limit)
		if err != nil {
			return nil, JournalError("list conversations", err)
		}
		for _, s := range page {
			// The queries select candidates. Decide decides, as everywhere.
			if !deleting[s.ID] && !s.Unlisted && Decide(p, ActionRead, &s) == nil {
				summaries = append(summaries, s)
				if len(summaries) == limit {
					return summaries, nil
				}
			}
		}
		if !hasMore {
			return summaries, nil
		}
		before = &page[len(page)-1]
	}
}

// readPage returns the first conversations after before that any of the queries selects, each once. hasMore is true if there
// may be more of them. All queries have the same order, so the first limit conversations of all of them together are
// complete; the others are read again for the next page.
func readPage(ctx context.Context, j Journal, queries []journal.Query, before *journal.Summary, limit int) (page []journal.Summary, hasMore bool, err error) {
	for _, q := range queries {
		if before != nil {
			q.BeforeUpdated, q.BeforeID = before.Updated, before.ID
		}
		results, err := j.Conversations(ctx, q)
		if err != nil {
			return nil, false, err
		}
		hasMore = hasMore || limit > 0 && len(results) >= limit
		page = append(page, results...)
	}
	slices.SortFunc(page, func(a, b journal.Summary) int { return a.Compare(&b) })
	page = slices.CompactFunc(page, func(a, b journal.Summary) bool { return a.ID == b.ID })
	if limit > 0 && len(page) > limit {
		page, hasMore = page[:limit], true // conversations after the limit of one query may belong between those of another
	}
	return page, hasMore, nil
}
