// Conversations by the names that people use: the command list, and ids that are abbreviated.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/app/cli/console"
)

// listCmd lists the caller's conversations.
type listCmd struct {
	remote
	Limit int  `short:"n" default:"20" help:"List at most this many conversations; 0 lists all." placeholder:"N"`
	JSON  bool `name:"json" help:"Print the conversations as JSON, one on each line."`
}

// Run prints a line for each conversation, most recently used first. It shows the beginning of each id, which is unique.
func (c *listCmd) Run(a *app) error {
	conversations, err := c.client().Conversations(a.ctx)
	if err != nil {
		return c.explain(err)
	}
	page := conversations
	if c.Limit > 0 {
		page = page[:min(c.Limit, len(page))]
	}
	if c.JSON {
		for i := range page {
			if err := a.printJSON(&page[i], nil); err != nil {
				return err
			}
		}
		return nil
	}
	if len(page) == 0 {
		fmt.Fprintln(a.stderr, "Start your first conversation with leat chat.")
		return nil
	}
	abbreviated := abbreviate(conversations)
	w := a.table()
	fmt.Fprintln(w, "ID\tUPDATED\tAGENT\tTITLE")
	for i := range page {
		s := &page[i]
		title := console.Clean(cmp.Or(s.Title, "(untitled)"))
		if s.Unread {
			title += " (unread)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", abbreviated[s.ID], s.Updated.Local().Format("2006-01-02 15:04"), cmp.Or(console.Clean(s.Agent), "-"), title)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if excess := len(conversations) - len(page); excess > 0 {
		fmt.Fprintf(a.stderr, "%s not shown; leat list --limit 0 lists all.\n", count(excess, "conversation"))
	}
	return nil
}

// shortID is the length of the shortest abbreviation in a list. It leaves room for conversations that are created later.
const shortID = 8

// abbreviate returns a unique prefix of each id.
func abbreviate(conversations []leat.Conversation) map[string]string {
	ids := make([]string, len(conversations))
	for i := range conversations {
		ids[i] = conversations[i].ID
	}
	slices.Sort(ids)
	abbreviated := make(map[string]string, len(ids))
	for i, id := range ids {
		n := min(shortID, len(id))
		// In sorted order, the ids with the longest common prefix are neighbours.
		isShared := func(prefix string) bool {
			return i > 0 && strings.HasPrefix(ids[i-1], prefix) || i+1 < len(ids) && strings.HasPrefix(ids[i+1], prefix)
		}
		for n < len(id) && isShared(id[:n]) {
			n++
		}
		abbreviated[id] = id[:n]
	}
	return abbreviated
}

// maxMatches is how many conversations the error for an ambiguous abbreviation shows.
const maxMatches = 5

// findConversation returns the id of the conversation that the user means: an id, or the beginning of one. It reports a conversation that
// doesn't exist, for which a stream would be retried forever.
func findConversation(ctx context.Context, client *leat.Client, id string) (string, error) {
	_, err := client.Conversation(ctx, id)
	if e, ok := errors.AsType[*leat.Error](err); !ok || e.Status != http.StatusNotFound {
		return id, err
	}
	conversations, err := client.Conversations(ctx)
	if err != nil {
		return "", err
	}
	var matches []leat.Conversation
	for i := range conversations {
		if strings.HasPrefix(conversations[i].ID, id) {
			matches = append(matches, conversations[i])
		}
	}
	switch len(matches) {
	case 0:
		return "", fmt.Errorf("no conversation %s, or you don't have access; leat list shows yours", id)
	case 1:
		return matches[0].ID, nil
	}
	var lines strings.Builder
	for i := range matches[:min(maxMatches, len(matches))] {
		fmt.Fprintf(&lines, "\n  %s  %s", matches[i].ID, matches[i].Title)
	}
	if excess := len(matches) - maxMatches; excess > 0 {
		fmt.Fprintf(&lines, "\n  and %d more", excess)
	}
	return "", fmt.Errorf("%w: several ids begin with %s:%s", errUsage, id, lines.String())
}

// lastConversation returns the id of the conversation that was used last.
func lastConversation(ctx context.Context, client *leat.Client) (string, error) {
	conversations, err := client.Conversations(ctx)
	switch {
	case err != nil:
		return "", err
	case len(conversations) == 0:
		return "", errors.New("no conversation exists; start one with leat chat")
	}
	return conversations[0].ID, nil
}
