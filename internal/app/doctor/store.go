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

// verifyLimit bounds the time for reading the store. A local disk reads some gigabytes in it. A larger store is
// checked in part, since a user waits for the result.
const verifyLimit = time.Minute

// maxDamaged bounds the number of damaged conversations that are listed.
const maxDamaged = 20

const fixDamage = "restore an older backup into another folder to read the conversation there, then delete it here"

// Store reads the store of a folder that no gateway is using, and lists damaged conversations. lock is the name of
// the file that a gateway locks. If a gateway is using the folder, Store returns nil, and [Damaged] can be asked
// instead.
//
// Store holds a shared lock while it reads, so a gateway that starts meanwhile fails until the check has ended. It
// changes nothing: a store that was not closed cleanly would have to be recovered first, so it is only reported.
func Store(ctx context.Context, dir, lock string) []Finding {
	r := &report{check: "store"}
	l := flock.New(filepath.Join(dir, lock), flock.SetFlag(0)) // don't create the file
	free, err := l.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // no gateway has ever used the folder
	case err != nil:
		r.warn("", "can't check %s: %v", dir, err)
		return r.findings
	case !free:
		return nil
	}
	defer func() { _ = l.Unlock() }() // the lock ends with the process at the latest
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
		r.ok("the store was not checked: %v; start the gateway, and run leat doctor again", err)
	case errors.Is(err, context.DeadlineExceeded):
		r.warn("the gateway checks each conversation when it is opened", "only part of the store could be checked within %v", verifyLimit)
	case err != nil:
		r.fail("restore the last backup into a new folder with leat restore", "%v", err)
	case len(damaged) == 0:
		r.ok("all stored conversations can be read")
	}
	return r.findings
}

// Damaged lists the conversations that the gateway at url has quarantined because they are damaged. The gateway finds
// damage when it opens or reads a conversation, so there may be more of it in conversations that have not been used
// since.
func Damaged(ctx context.Context, client *http.Client, url, token string) []Finding {
	r := &report{check: "store"}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	damaged, err := overview(ctx, client, url, token)
	if err != nil {
		r.warn("set the token with --token or LEAT_API_TOKEN", "can't get the list of damaged conversations: %v", err)
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
		r.ok("the gateway has found no damaged conversations")
	}
	return r.findings
}

// damage is a damaged conversation in the response of GET /api/overview.
type damage struct {
	Conversation string `json:"conversation"`
	Seq          int64  `json:"seq"`
	Error        string `json:"error"`
}

// overview requests the list of damaged conversations, which only the admin gets. The response is limited to 8 MiB.
func overview(ctx context.Context, client *http.Client, url, token string) ([]damage, error) {
	resp, err := send(ctx, client, url+"/api/overview", authorization(token))
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
