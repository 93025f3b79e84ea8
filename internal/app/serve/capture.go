package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/service/capture"
)

// rawFolder is the folder of captured bytes in the data folder.
const rawFolder = "raw"

// openCapture opens the store of the bytes that turns exchange with their agents. If it is disabled, openCapture deletes what was captured
// before and returns nil, which is a valid store that captures nothing.
func openCapture(cfg *config.Config, log *slog.Logger) (*capture.Log, error) {
	dir := filepath.Join(cfg.Data, rawFolder)
	if !cfg.Record.Enabled {
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("delete the recorded bytes: %w", err)
		}
		return nil, nil
	}
	return capture.Open(capture.Options{Dir: dir, Keep: time.Duration(cfg.Record.Keep), Size: int64(cfg.Record.Size), Log: log})
}

// Secrets returns the secret values of an agent's configuration: the options that are secret, and the contents of the files and environment
// variables that options name. Values that can't be read are left out, since making the agent reports them.
func Secrets(kinds agent.Kinds, s agent.Spec, lookup func(string) (string, bool)) []string {
	kind, err := kinds.Check(s)
	if err != nil {
		return nil
	}
	var all []string
	env := func(name string) {
		if v, ok := lookup(name); ok {
			all = append(all, v)
		}
	}
	for name, value := range s.Options {
		secret := slices.ContainsFunc(kind.Options, func(o agent.Option) bool { return o.Name == name && o.Secret })
		switch {
		case secret:
			all = append(all, value)
		case name == "env":
			for _, one := range process.Names(value) {
				env(one)
			}
		case strings.HasSuffix(name, "_env"):
			env(value)
		case strings.HasSuffix(name, "_file"):
			if b, err := os.ReadFile(value); err == nil && len(b) <= maxSecret {
				all = append(all, strings.TrimSpace(string(b)))
			}
		}
	}
	return all
}

// maxSecret is the largest size of a file with a secret, in bytes.
const maxSecret = 16 << 10
