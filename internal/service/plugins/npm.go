// Plugins from npm packages. The npm of this machine fetches them, with scripts switched off.

package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// npmLimit limits one call of npm.
	npmLimit = 5 * time.Minute
	// npmKill is the time between the signal that ends npm and its kill.
	npmKill = 2 * time.Second
	// maxNPM limits the output of npm that is read, in bytes.
	maxNPM = 4 << 20
)

// npmConfig is npm's configuration file. One in a plugin's folder could make npm run other programs, so it is refused.
const npmConfig = ".npmrc"

// npm runs the npm program. Its own configuration decides which registry packages come from. A new process is started for each
// call.
type npm struct {
	path string
	log  *slog.Logger
}

// findNPM finds npm in PATH. It is called when an installation needs npm, so a gateway without npm can still install archives.
func findNPM(log *slog.Logger) (*npm, error) {
	path, err := process.Find([]string{"npm"})
	if err != nil {
		return nil, fmt.Errorf("npm packages can't be installed without npm: %w", err)
	}
	return &npm{path: path, log: log}, nil
}

// npmEnv returns npm's environment. It contains none of the gateway's secrets, and nothing that makes npm run scripts of
// packages.
func npmEnv() []string {
	// Proxy and certificate settings are needed to reach the registry at all.
	env := process.Environment(nil, "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
	// npm's settings for registries are variables too. The one that decides about scripts is overridden below.
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToLower(v), "=")
		if strings.HasPrefix(name, "npm_config_") && name != "npm_config_ignore_scripts" {
			env = append(env, v)
		}
	}
	return append(env, "npm_config_ignore_scripts=true", "npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false", "npm_config_yes=false")
}

// run runs npm in a folder and returns its standard output. It kills npm if ctx ends or npmLimit passes. Standard error is
// logged, and its last line becomes part of the error.
func (n *npm) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, npmLimit, fmt.Errorf("npm took longer than %v", npmLimit))
	defer cancel()
	p, err := process.Start(process.Program{Path: n.path, Command: append([]string{"npm"}, args...), Env: npmEnv(), Dir: dir, KillAfter: npmKill})
	if err != nil {
		return nil, fmt.Errorf("npm can't be started: %w", err)
	}
	// Standard error is read concurrently, because npm blocks if its pipe is full.
	aside := &process.Aside{Log: n.log.With("program", "npm")}
	var tasks sync.WaitGroup
	tasks.Go(func() { aside.ReadAll(p.Stderr) })
	stop := context.AfterFunc(ctx, p.Kill)
	p.WriteInput(nil)
	output, rerr := io.ReadAll(io.LimitReader(p.Stdout, maxNPM))
	// The rest is discarded rather than left unread, so that npm can exit.
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

// npmFailure describes a failed call. npm reports errors as JSON on standard output; otherwise the last line of its log is
// used. The text is cleaned of control characters, because it is shown to the admin.
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

// version resolves a version or tag, such as latest, to an exact version. Downloading by exact version avoids that a tag moves
// between two calls of npm.
func (n *npm) version(ctx context.Context, work, name, version string) (string, error) {
	output, err := n.run(ctx, work, "view", "--json", "--", name+"@"+version, "version")
	if err != nil {
		return "", err
	}
	var v string
	if err := json.Unmarshal(output, &v); err != nil || !packageVersion.MatchString(v) {
		return "", fmt.Errorf("version %s of npm package %s not found", version, name)
	}
	return v, nil
}

// pack downloads a package's archive into the folder work and opens it. The file is found by its suffix: work contains no other archive,
// and npm derives the name from the package.
func (n *npm) pack(ctx context.Context, work, name, version string) (*os.File, error) {
	if _, err := n.run(ctx, work, "pack", "--json", "--ignore-scripts", "--pack-destination="+work, "--", name+"@"+version); err != nil {
		return nil, err
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return nil, errors.New("npm pack produced no archive")
	}
	return os.Open(archives[0])
}

// dependencies installs the dependencies of the package in dir, without development dependencies and scripts, and then checks
// the limits on files again. No lock file of the package is used or written. --install-links copies local packages instead of linking them,
// and --no-bin-links creates no links to programs, because installed files must be regular files.
func (n *npm) dependencies(ctx context.Context, dir string) error {
	if _, err := n.run(ctx, dir, "install", "--json", "--ignore-scripts", "--omit=dev", "--install-links", "--no-bin-links", "--no-package-lock", "--no-save"); err != nil {
		return err
	}
	return checkSize(dir)
}

// needsDependencies reports whether the package in dir has dependencies that aren't installed yet. An archive may bring them in
// node_modules, and then npm isn't needed. It refuses a package that
// would make npm fetch from another place than its registry, or run something: overrides, workspaces, an .npmrc, and
// dependencies by URL or path.
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
		return false, errors.New("package.json: overrides and workspaces are not supported")
	}
	if _, err := os.Lstat(filepath.Join(dir, npmConfig)); !errors.Is(err, fs.ErrNotExist) {
		return false, errors.New(npmConfig + " is not supported, because it changes npm's configuration")
	}
	for _, group := range []map[string]string{p.Dependencies, p.Optional, p.Peer} {
		for name, spec := range group {
			target := strings.TrimPrefix(spec, "npm:")
			if target != spec && packageName.MatchString(strings.Split(strings.TrimPrefix(target, "@"), "@")[0]) {
				continue
			}
			if strings.ContainsAny(spec, ":/\\") {
				return false, fmt.Errorf("package.json: dependency %.100s has the source %.100q; only versions are supported", name, spec)
			}
		}
	}
	return true, nil
}

// Downloading an archive within a size limit, with its checksum, and from public addresses unless others are allowed.

const (
	// fetchLimit limits the download of an archive.
	fetchLimit = 5 * time.Minute
	// maxHops limits redirects. Each target is checked against the same address rules as the first.
	maxHops = 5
)

// client returns the client that downloads archives. It refuses private addresses unless allowPrivate is set, and never follows
// a redirect from https to http.
func client(allowPrivate bool) *http.Client {
	c := outbound.New(outbound.Options{AllowPrivate: allowPrivate, Timeout: fetchLimit, MaxBody: maxArchive})
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxHops:
			return errors.New("too many redirects")
		case r.URL.Scheme != "https" && r.URL.Scheme != via[0].URL.Scheme:
			return errors.New("redirect to an address without TLS refused")
		}
		return nil
	}
	return c
}

// download fetches an archive into a file and returns its SHA-256 in hex. The size is limited by the client and again in save,
// because a compressed transfer may expand.
func download(ctx context.Context, c *http.Client, address string, to *os.File) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", bare(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return "", bare(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the archive's server answered %s", resp.Status)
	}
	return save(resp.Body, to)
}

// bare removes the URL from an error of the client, because the URL may contain a secret, and the error is logged and shown to clients.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// save copies an archive to a file and returns its SHA-256 in hex. It fails above maxArchive, after reading one byte more. The checksum is
// computed from the bytes that are written, so a source that changes meanwhile can't pass a check with other bytes.
func save(from io.Reader, to *os.File) (string, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, maxArchive+1))
	switch {
	case errors.Is(err, outbound.ErrTooLarge) || err == nil && n > maxArchive:
		return "", fmt.Errorf("the archive is larger than %d MiB", maxArchive>>20)
	case err != nil:
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
