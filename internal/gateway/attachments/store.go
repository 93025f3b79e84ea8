// The files of conversations and their records in the journal, and the sweep that removes expired ones.

package attachments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// DefaultMaxFile is enough for documents, pictures and recordings, and too little for films.
	DefaultMaxFile = 100 << 20
	// lifetime is how long a file is kept that is part of no message, and an abandoned upload.
	lifetime = 24 * time.Hour
	// sweepInterval is the time between two sweeps. Bytes without a record are removed when they are older than sweepAge, because those
	// of a running upload have no record yet.
	sweepInterval, sweepAge = time.Hour, 24 * time.Hour
)

// fileStore stores the bytes of files, in one folder per conversation. The store that [files.Open] returns implements it.
type fileStore interface {
	// Create stores the bytes of r under an id that is derived from them. If there are more than max, the error wraps files.ErrTooLarge.
	Create(conversation string, r io.Reader, max int64) (files.StoredFile, error)
	// Open opens a file. If it doesn't exist, the error wraps fs.ErrNotExist.
	Open(conversation, id string) (*os.File, error)
	// Remove and RemoveAll delete one file or all files of a conversation. A missing file is not an error.
	Remove(conversation, id string) error
	RemoveAll(conversation string) error
	// Sweep deletes the files for which isKnown returns false and that are older than age, and calls onRemove for each.
	Sweep(age time.Duration, isKnown func(folder, id string) bool, onRemove func(folder, id string)) error
}

// Journal is the part of the gateway's journal in which the store looks up records. The gateway's commits write them.
type Journal interface {
	// Get returns the value of a key. If the key doesn't exist or has expired, the error is journal.ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
	// KeysAfter lists up to limit keys with a prefix that follow the key after, in ascending order, and their values.
	KeysAfter(ctx context.Context, prefix, after string, limit int) ([]journal.KeyValue, error)
}

// Config configures a [Store]. Journal and Files are required.
type Config struct {
	Journal Journal
	// Files is the store of the bytes. Nothing else may write in its folder.
	Files fileStore
	// MaxFile bounds one file, in bytes. If it is 0, DefaultMaxFile is used.
	MaxFile int64
	// Workspace is a folder that the gateway shares with its agents. It may be nil.
	Workspace *files.Workspace
	// Uploads stores resumable uploads. If it is nil, they are disabled.
	Uploads *files.Uploads
	// BasePath is the prefix of the paths under which files are served. It is empty or begins with a slash.
	BasePath string
	// Log receives what can't be returned as an error. If it is nil, nothing is logged.
	Log *slog.Logger
}

// Store stores the files of all conversations. Its methods may be called by several goroutines at once.
type Store struct {
	journal   Journal
	files     fileStore
	maxFile   int64
	workspace *files.Workspace // may be nil
	uploads   *files.Uploads   // may be nil
	basePath  string
	log       *slog.Logger
	sizes     *sizes
}

var _ gateway.Attachments = (*Store)(nil)

// NewStore returns a store that counts no files yet. The gateway calls Start, which counts them, and then Run.
func NewStore(c Config) *Store {
	return &Store{
		journal: c.Journal, files: c.Files, maxFile: cmp.Or(c.MaxFile, DefaultMaxFile), workspace: c.Workspace, uploads: c.Uploads,
		basePath: c.BasePath, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), sizes: newSizes(),
	}
}

// record describes a stored file in the journal.
type record struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime"`
	Alt  string `json:"alt,omitempty"`
	Size int64  `json:"size"`
	At   int64  `json:"at"` // when it was stored, in epoch milliseconds
	// Path is the name of the workspace file from which the bytes were copied. That file may have changed or been removed since.
	Path string `json:"path,omitempty"`
	// Tenant and Owner are the account whose quota the file uses.
	Tenant string `json:"tenant,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

func (r *record) account() quota.Account { return quota.Account{Tenant: r.Tenant, Subject: r.Owner} }

// media returns the media that show the stored file.
func (s *Store) media(conversation, id string, r *record) event.Media {
	return event.Media{URL: s.url(conversation, id), MIME: r.MIME, Name: r.Name, Size: r.Size, Alt: r.Alt}
}

// Start implements [gateway.Attachments].
func (s *Store) Start(ctx context.Context) error {
	return s.sweep(ctx, 0) // no upload can be running yet, so the age of bytes without a record doesn't matter
}

// Run implements [gateway.Attachments].
func (s *Store) Run(ctx context.Context) {
	for retry.Sleep(ctx, sweepInterval) == nil {
		if err := s.sweep(ctx, sweepAge); err != nil && ctx.Err() == nil {
			s.log.Warn("sweep of files failed; it is repeated", "error", err, "in", sweepInterval.String())
		}
	}
}

// sweep counts the files that have a record. It removes bytes without a record if they are older than age, which is how expired files end:
// the journal has deleted their records. It also removes abandoned uploads. All keys of files are held in memory meanwhile.
func (s *Store) sweep(ctx context.Context, age time.Duration) error {
	recorded := map[string]bool{}
	const page = 1000
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, journalkey.FilePrefix, "", page) {
		if err != nil {
			return fmt.Errorf("attachments: list files: %w", err)
		}
		conversation, id := path.Split(strings.TrimPrefix(kv.Key, journalkey.FilePrefix))
		folder := files.Folder(strings.TrimSuffix(conversation, "/"))
		var rec record
		if err := json.Unmarshal(kv.Value, &rec); err != nil {
			return fmt.Errorf("attachments: record of file %s: %w", id, err)
		}
		recorded[folder+"/"+id] = true
		s.sizes.add(folder, rec.account(), id, rec.Size)
	}
	count := 0
	err := s.files.Sweep(age, func(folder, id string) bool { return recorded[folder+"/"+id] }, func(folder, id string) {
		count++
		s.sizes.remove(folder, id)
	})
	if count > 0 {
		s.log.Info("files removed that are part of no message", "files", count)
	}
	return errors.Join(err, s.sweepUploads())
}

// sweepUploads removes uploads that got no bytes for the time of lifetime. It also measures the workspace again, because agents remove
// files from it without the gateway.
func (s *Store) sweepUploads() error {
	var errs []error
	if s.uploads != nil {
		count, err := s.uploads.Sweep(lifetime)
		if errs = append(errs, err); count > 0 {
			s.log.Info("abandoned uploads removed", "uploads", count)
		}
	}
	if s.workspace != nil {
		errs = append(errs, s.workspace.Count())
	}
	return errors.Join(errs...)
}

// StoredBytes implements [gateway.Attachments]. Uploads and the uploaded files of the workspace count too.
func (s *Store) StoredBytes(tenant, owner string) (ofOwner, ofTenant int64) {
	ofOwner, ofTenant = s.sizes.of(tenant, owner)
	add := func(ownerBytes, tenantBytes int64) { ofOwner, ofTenant = ofOwner+ownerBytes, ofTenant+tenantBytes }
	if s.workspace != nil {
		add(s.workspace.StoredBytes(tenant, owner))
	}
	if s.uploads != nil {
		add(s.uploads.StoredBytes(tenant, owner))
	}
	return ofOwner, ofTenant
}

// Erase implements [gateway.Attachments]. The gateway calls it after the conversation is deleted, and again at the next start if the
// deletion was interrupted, so every step tolerates that its files are gone.
func (s *Store) Erase(ctx context.Context, conversation string) error {
	if err := s.files.RemoveAll(conversation); err != nil {
		return err
	}
	s.sizes.remove(files.Folder(conversation))
	var errs []error
	if s.uploads != nil {
		err := s.uploads.RemoveAll(ctx, func(u files.Upload) bool { return u.Conversation == conversation })
		if !errors.Is(err, files.ErrBusy) { // a busy upload fails because the conversation is gone, and a later sweep removes it
			errs = append(errs, err)
		}
	}
	if s.workspace != nil {
		errs = append(errs, s.workspace.RemoveConversation(conversation))
	}
	return errors.Join(errs...)
}

// reject returns a rejection with a reason for programs and a text for people.
func reject(reason, format string, args ...any) *gateway.Rejection {
	return &gateway.Rejection{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
