// The list of sessions.

package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// metaDir is the key of a conversation's metadata with the folder of the project that it was begun in. Agents get it with the metadata.
const metaDir = "cwd"

// list returns the conversations that were begun in a folder, or that belong to none because they were begun elsewhere, such as in the
// dashboard. Archived ones aren't listed. The gateway limits their number, so the list has one page.
func (a *host) list(ctx context.Context, p *sessionParams) (any, error) {
	conversations, err := a.Client.Conversations(ctx)
	if err != nil {
		return nil, a.fail(err)
	}
	folder := p.Dir
	if folder == "" {
		// The protocol requires an absolute path.
		if folder, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("working folder: %w", err)
		}
	}
	// An empty list, and not null, which strict clients refuse.
	sessions := []sessionInfo{}
	for i := range conversations {
		c := &conversations[i]
		dir := ""
		if b := c.Metadata[metaDir]; len(b) > 0 && json.Unmarshal(b, &dir) != nil {
			dir = "" // another program's key
		}
		if string(c.Metadata[leat.MetaArchived]) == "true" || p.Dir != "" && dir != "" && dir != p.Dir {
			continue
		}
		if dir == "" {
			dir = folder
		}
		sessions = append(sessions, sessionInfo{ID: c.ID, Dir: dir, Title: c.Title, Updated: c.Updated.UTC().Format(time.RFC3339)})
	}
	return map[string]any{"sessions": sessions}, nil
}
