package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/service/capture"
)

// rawFolder is the folder of captured bytes in the data folder.
const rawFolder = "raw"

// openCapture opens the store of the bytes that turns exchange with their agents. If it is disabled, openCapture
// deletes what was captured before and returns nil, which is a valid store that captures nothing. An operator who
// disables the capture doesn't expect that texts of conversations remain in the folder.
func openCapture(cfg *config.Config, log *slog.Logger) (*capture.Log, error) {
	dir := filepath.Join(cfg.Data, rawFolder)
	if !cfg.Record.Enabled {
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("delete the recorded bytes: %w", err)
		}
		return nil, nil
	}
	return capture.Open(capture.Options{Dir: dir, Retention: time.Duration(cfg.Record.Retention), Size: int64(cfg.Record.Size), Log: log})
}

// Secrets returns the secrets of an agent's configuration: see [agent.Kinds.Secrets], and the environment variables
// that the agent's program gets (option env). Captures mask them. The variables may be harmless, but a program that
// gets one may print it.
func Secrets(kinds agent.Kinds, s agent.Spec, lookup func(string) (string, bool)) []string {
	secrets := kinds.Secrets(s)
	for _, name := range process.Names(s.Options["env"]) {
		if v, ok := lookup(name); ok {
			secrets = append(secrets, v)
		}
	}
	return secrets
}
