package cli

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

// rawFolder is where the bytes of turns lie, below that of the data.
const rawFolder = "raw"

// openRaw opens the log of what turns exchange; nil where nothing is to be kept: then what was kept before goes too.
func openRaw(cfg *config.Config, log *slog.Logger) (*capture.Log, error) {
	dir := filepath.Join(cfg.Data, rawFolder)
	if !cfg.Record.Enabled {
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("what was recorded before: %w", err)
		}
		return nil, nil
	}
	return capture.Open(capture.Options{Dir: dir, Keep: time.Duration(cfg.Record.Keep), Size: int64(cfg.Record.Size), Log: log})
}

// secretsOf are the values that an agent's configuration names as secret: options that are so, what lies in the files and
// environment variables that options name. That one can't be read is for the agent to say.
func secretsOf(kinds agent.Kinds, s agent.Spec, lookup func(string) (string, bool)) []string {
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

// maxSecret bounds a file that holds a secret, in bytes.
const maxSecret = 16 << 10
