package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// verifyLimit bounds how long a store is read: a local disk gives some gigabytes in that time.
const verifyLimit = time.Minute

// maxDamaged bounds the damaged conversations that are named.
const maxDamaged = 20

const fixDamage = "restore a backup from before into another folder to read it there, then delete the conversation here"

// Store reads what is stored in a folder that no gateway uses, and names the conversations that are damaged. lock is the name
// of the file that a gateway locks. If a gateway uses the folder, Store returns nil: see [Damaged].
func Store(ctx context.Context, dir, lock string) []Finding {
	r := &report{check: "store"}
	l := flock.New(filepath.Join(dir, lock), flock.SetFlag(0)) // which doesn't make the file
	free, err := l.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // no gateway has ever used the folder
	case err != nil:
		r.warn("", "%s is not looked at: %v", dir, err)
		return r.findings
	case !free:
		return nil
	}
	defer func() { _ = l.Unlock() }() // it ends with the process at the latest
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	damaged, err := sqlite.Verify(ctx, dir)
	for _, d := range damaged[:min(len(damaged), maxDamaged)] {
		r.fail(fixDamage, "%v", &d)
	}
	if excess := len(damaged) - maxDamaged; excess > 0 {
		r.fail(fixDamage, "%d more conversations are damaged", excess)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, sqlite.ErrUnclean), errors.Is(err, errors.ErrUnsupported):
		r.ok("what is stored is not looked at: %v; start the gateway, and ask again", err)
	case errors.Is(err, context.DeadlineExceeded):
		r.warn("the gateway looks at each conversation when it is read", "only a part of what is stored was read within %v", verifyLimit)
	case err != nil:
		r.fail("restore the last backup into a new folder: leat restore", "%v", err)
	case len(damaged) == 0:
		r.ok("all conversations that are stored can be read")
	}
	return r.findings
}

// Damaged asks the gateway at url which conversations it has set apart because they are damaged.
func Damaged(ctx context.Context, client *http.Client, url, token string) []Finding {
	r := &report{check: "store"}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	damaged, err := overview(ctx, client, url, token)
	if err != nil {
		r.warn("give the token with --token or LEAT_API_TOKEN", "the gateway doesn't say which conversations are damaged: %v", err)
		return r.findings
	}
	for _, d := range damaged[:min(len(damaged), maxDamaged)] {
		position := ""
		if d.Seq > 0 {
			position = fmt.Sprintf(" at seq %d", d.Seq)
		}
		r.fail(fixDamage, "conversation %s is damaged%s: %s", d.Conversation, position, d.Error)
	}
	if len(damaged) == 0 {
		r.ok("the gateway has met no damaged conversation")
	}
	return r.findings
}

// damage is a conversation as GET /api/overview tells it.
type damage struct {
	Conversation string `json:"conversation"`
	Seq          int64  `json:"seq"`
	Error        string `json:"error"`
}

func overview(ctx context.Context, client *http.Client, url, token string) ([]damage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/overview", nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	var body struct{ Damaged []damage }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 8<<20)).Decode(&body); err != nil {
		return nil, err
	}
	return body.Damaged, nil
}
