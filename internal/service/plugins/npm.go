package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// npmLimit is how long npm may take for one thing that is asked of it.
	npmLimit = 5 * time.Minute
	// npmKill is how long it may take to end once it was told to.
	npmKill = 2 * time.Second
	// maxNPM bounds what is read of its output, in bytes.
	maxNPM = 4 << 20
)

// npmConfig is the file by which a folder changes what npm does: which programs it runs among it.
const npmConfig = ".npmrc"

// npm is the program of that name. Where packages come from is its own configuration's to say.
type npm struct {
	path string
	log  *slog.Logger
}

func findNPM(log *slog.Logger) (*npm, error) {
	path, err := process.Find([]string{"npm"})
	if err != nil {
		return nil, fmt.Errorf("npm is needed to install npm packages: %w", err)
	}
	return &npm{path: path, log: log}, nil
}

// npmEnv is what npm sees: never the gateway's own variables, and none by which a package's script would be run.
func npmEnv() []string {
	env := process.Environment(nil, "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
	for _, v := range os.Environ() {
		name := strings.ToLower(strings.SplitN(v, "=", 2)[0])
		if strings.HasPrefix(name, "npm_config_") && name != "npm_config_ignore_scripts" {
			env = append(env, v)
		}
	}
	return append(env, "npm_config_ignore_scripts=true", "npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false", "npm_config_yes=false")
}

// run asks npm for something in a folder, and returns what it printed.
func (n *npm) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, npmLimit, fmt.Errorf("npm took longer than %v", npmLimit))
	defer cancel()
	p, err := process.Start(process.Program{Path: n.path, Command: append([]string{"npm"}, args...), Env: npmEnv(), Dir: dir, KillAfter: npmKill})
	if err != nil {
		return nil, fmt.Errorf("npm can't be started: %w", err)
	}
	aside := &process.Aside{Log: n.log.With("program", "npm")}
	var tasks sync.WaitGroup
	tasks.Go(func() { aside.ReadAll(p.Stderr) })
	stop := context.AfterFunc(ctx, p.Kill)
	p.WriteInput(nil)
	output, rerr := io.ReadAll(io.LimitReader(p.Stdout, maxNPM))
	if rerr == nil {
		_, rerr = io.Copy(io.Discard, p.Stdout)
	}
	<-p.ExitDone()
	stop()
	p.Close(tasks.Wait)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case p.Err() != nil:
		return nil, npmFailure(p.Err(), output, aside.Last())
	}
	return output, rerr
}

// npmFailure says what npm says of what went wrong.
func npmFailure(err error, output []byte, last string) error {
	var report struct {
		Error struct{ Code, Summary string } `json:"error"`
	}
	if json.Unmarshal(output, &report) == nil && report.Error.Summary != "" {
		return fmt.Errorf("npm: %s", process.Clean(strings.TrimSpace(report.Error.Summary)))
	}
	if last != "" {
		return fmt.Errorf("npm ended with %w: %s", err, last)
	}
	return fmt.Errorf("npm ended with %w", err)
}

// version looks up which version of a package a version or a tag is.
func (n *npm) version(ctx context.Context, work, name, version string) (string, error) {
	output, err := n.run(ctx, work, "view", "--json", "--", name+"@"+version, "version")
	if err != nil {
		return "", err
	}
	var v string
	if err := json.Unmarshal(output, &v); err != nil || !packageVersion.MatchString(v) {
		return "", fmt.Errorf("npm knows no version %s of %s", version, name)
	}
	return v, nil
}

// pack fetches a package's archive into a folder.
func (n *npm) pack(ctx context.Context, work, name, version string) (*os.File, error) {
	if _, err := n.run(ctx, work, "pack", "--json", "--ignore-scripts", "--pack-destination="+work, "--", name+"@"+version); err != nil {
		return nil, err
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return nil, errors.New("npm brought no archive")
	}
	return os.Open(archives[0])
}

// dependencies installs what a package needs. It reports false where that is nothing, or there already.
func (n *npm) dependencies(ctx context.Context, dir string) error {
	if _, err := n.run(ctx, dir, "install", "--json", "--ignore-scripts", "--omit=dev", "--install-links", "--no-bin-links", "--no-package-lock", "--no-save"); err != nil {
		return err
	}
	return checkSize(dir)
}

// needs reports whether a folder's package has dependencies that are not there, and refuses what would let npm fetch from
// elsewhere than where packages come from, or do something else.
func needsDependencies(dir string) (bool, error) {
	b, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
		Optional     map[string]string `json:"optionalDependencies"`
		Peer         map[string]string `json:"peerDependencies"`
		Overrides    json.RawMessage   `json:"overrides"`
		Workspaces   json.RawMessage   `json:"workspaces"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return false, fmt.Errorf("package.json: %w", err)
	}
	if len(p.Dependencies)+len(p.Optional)+len(p.Peer) == 0 {
		return false, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err == nil {
		return false, nil
	}
	if p.Overrides != nil || p.Workspaces != nil {
		return false, errors.New("package.json: overrides and workspaces are not taken")
	}
	if _, err := os.Lstat(filepath.Join(dir, npmConfig)); !errors.Is(err, fs.ErrNotExist) {
		return false, errors.New(npmConfig + " is not taken: it would change what npm does")
	}
	for _, group := range []map[string]string{p.Dependencies, p.Optional, p.Peer} {
		for name, spec := range group {
			target := strings.TrimPrefix(spec, "npm:")
			if target != spec && packageName.MatchString(strings.Split(strings.TrimPrefix(target, "@"), "@")[0]) {
				continue
			}
			if strings.ContainsAny(spec, ":/\\") {
				return false, fmt.Errorf("package.json: dependency %.100s comes from %.100q; only versions are taken", name, spec)
			}
		}
	}
	return true, nil
}
