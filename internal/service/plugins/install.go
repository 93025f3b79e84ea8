// Installing a plugin in phases that can be cancelled: fetch, unpack, check, try, and replace the version before.

package plugins

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Phase is a step of an installation. Clients receive it as is.
type Phase string

// The phases in order. phaseError follows the phase that failed.
const (
	phaseResolving    Phase = "resolving"
	phaseDownloading  Phase = "downloading"
	phaseDependencies Phase = "installing-deps"
	phaseValidating   Phase = "validating"
	phaseConfiguring  Phase = "configuring"
	phaseRestarting   Phase = "restarting"
	phaseComplete     Phase = "complete"
	phaseError        Phase = "error"
)

// Progress reports a step of an installation. Plugin is the name of the npm package, or that of the plugin once its manifest is
// read. It is empty before that for folders and archives.
type Progress struct {
	Plugin  string
	Phase   Phase
	Message string
}

// Runtime runs plugins. The store calls it from one goroutine at a time.
type Runtime interface {
	// Configure checks whether the plugin can run under its name in this configuration. The error is shown to the admin.
	Configure(p Plugin) error
	// Try starts the plugin, waits until it is ready, and stops it. The error says why it didn't become ready.
	Try(ctx context.Context, p Plugin) error
	// Run starts the plugin for good and replaces a running one with the same name.
	Run(p Plugin) error
	// Stop ends the plugin and returns when its processes are gone.
	Stop(name string)
}

// installation is the state of one running Install. Its folder is deleted if the installation fails, and becomes the plugin's
// folder if it succeeds.
type installation struct {
	*Store
	req    Request
	report func(Progress)

	displayName string // the name in progress messages
	phase       Phase  // the current one, to which an error is attributed
	folder      string // random name of its folder, below the store's
	version     string // exact version of the npm package
	npm         *npm
	plugin      Plugin
}

// Install installs a plugin, or replaces the installed version, and reports each phase. The error wraps ErrInvalid or ErrBusy
// if the installation wasn't started, and is a *Failure otherwise. After an error nothing has changed: the previous version is
// still installed. If ctx ends, the installation stops at the next phase.
//
// report is called from the goroutine of the caller, in order, and must return soon: the installation waits for it. The last call has the
// phase complete or error.
func (s *Store) Install(ctx context.Context, req Request, report func(Progress)) (Plugin, error) {
	if err := req.Check(); err != nil {
		return Plugin{}, err
	}
	// The slot is held until the installation ends, including the trial run.
	release, err := s.acquire()
	if err != nil {
		return Plugin{}, err
	}
	defer release()
	in := &installation{Store: s, req: req, report: report, displayName: req.Name, folder: strings.ToLower(rand.Text())}
	if err := in.run(ctx); err != nil {
		s.discard(in.folder)
		if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
			err = context.Cause(ctx) // the failure is a consequence of the cancellation
		}
		f := &Failure{Phase: in.phase, Err: err}
		in.reportProgress(phaseError, "%v", f)
		return Plugin{}, f
	}
	in.phase = phaseComplete
	in.reportProgress(phaseComplete, "%s %s is installed", in.plugin.Manifest.Name, in.plugin.Manifest.Version)
	return in.plugin, nil
}

// reportProgress reports a message of a phase.
func (in *installation) reportProgress(p Phase, format string, args ...any) {
	in.report(Progress{Plugin: in.displayName, Phase: p, Message: fmt.Sprintf(format, args...)})
}

// begin enters a phase and reports it. It returns an error if the installation was cancelled. A later error of the phase is attributed to
// in.phase, so begin comes before anything that can fail.
func (in *installation) begin(ctx context.Context, p Phase, format string, args ...any) error {
	in.phase = p
	in.reportProgress(p, format, args...)
	return context.Cause(ctx)
}

// path returns a path inside the installation's folder.
func (in *installation) path(elem ...string) string {
	return filepath.Join(append([]string{in.cfg.Dir, in.folder}, elem...)...)
}

// run executes the phases in order. Each depends on the results of the one before.
func (in *installation) run(ctx context.Context) error {
	for _, phase := range []func(context.Context) error{in.resolve, in.download, in.dependencies, in.validate, in.configure, in.restart} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

// resolve determines the exact version of an npm package, or checks that the folder or archive exists. It creates the
// installation's folder. A remote archive isn't contacted yet; its download reports whether it exists.
func (in *installation) resolve(ctx context.Context) (err error) {
	spec := strings.TrimPrefix(in.req.origin(cmp.Or(in.req.Version, "latest")), "npm:")
	if err := in.begin(ctx, phaseResolving, "Looking up %s...", spec); err != nil {
		return err
	}
	if err := os.MkdirAll(in.path(filesDir), 0o700); err != nil {
		return err
	}
	switch {
	case in.req.Name != "":
		if in.npm, err = findNPM(in.cfg.Log); err != nil {
			return err
		}
		// With its own package.json, so that npm doesn't use a project in a parent folder.
		if err := os.Mkdir(in.path("work"), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(in.path("work", "package.json"), []byte("{}\n"), 0o600); err != nil {
			return err
		}
		in.version, err = in.npm.version(ctx, in.path("work"), in.req.Name, cmp.Or(in.req.Version, "latest"))
		return err
	case in.req.Folder != "":
		return checkLocal(in.req.Folder, "folder", fs.FileMode.IsDir)
	case !remote(in.req.Archive):
		return checkLocal(in.req.Archive, "regular file", fs.FileMode.IsRegular)
	}
	return nil
}

// checkLocal returns an error if a path doesn't exist or isn't of a kind. It fails early: the download would fail too, but with a less
// clear error.
func checkLocal(path, kind string, isKind func(fs.FileMode) bool) error {
	info, err := os.Stat(path)
	if err == nil && !isKind(info.Mode()) {
		err = fmt.Errorf("%s is not a %s", path, kind)
	}
	return err
}

// download copies or unpacks the plugin's files into its folder, after the checksum was compared. Nothing is unpacked before
// the checksum matches, because an attacker could otherwise choose what the unpacker reads.
func (in *installation) download(ctx context.Context) error {
	spec := in.req.origin(in.version)
	if in.req.Name != "" {
		spec = in.req.Name + "@" + in.version
	}
	if err := in.begin(ctx, phaseDownloading, "Downloading %s...", spec); err != nil {
		return err
	}
	files, err := os.OpenRoot(in.path(filesDir))
	if err != nil {
		return err
	}
	defer files.Close()
	if in.req.Folder != "" {
		return copyFolder(in.req.Folder, files)
	}
	archive, err := in.archive(ctx)
	if err != nil {
		return err
	}
	defer archive.Close()
	if in.req.SHA256 != "" && !strings.EqualFold(in.plugin.SHA256, in.req.SHA256) {
		return fmt.Errorf("the archive's sha256 is %s, not %s", in.plugin.SHA256, strings.ToLower(in.req.SHA256))
	}
	return unpack(archive, files)
}

// archive returns the archive as a local file, positioned anywhere, and sets the plugin's checksum. The caller closes it. The
// copy in the installation's folder is what is checked and unpacked, so a file that changes meanwhile has no effect.
func (in *installation) archive(ctx context.Context) (*os.File, error) {
	to, err := os.OpenFile(in.path("archive"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if remote(in.req.Archive) {
		in.plugin.SHA256, err = download(ctx, in.http, in.req.Archive, to)
	} else {
		var from *os.File
		if in.req.Name != "" {
			from, err = in.npm.pack(ctx, in.path("work"), in.req.Name, in.version)
		} else {
			from, err = os.Open(in.req.Archive)
		}
		if err == nil {
			in.plugin.SHA256, err = save(from, to)
			_ = from.Close()
		}
	}
	if err != nil {
		_ = to.Close()
		return nil, err
	}
	return to, nil
}

// dependencies installs the npm packages that the plugin needs. It also finds the folder with the manifest, because package.json is
// there. The phase is reported even if nothing is missing, so that clients always see the same phases. npm runs in the plugin's
// folder, with the scripts of all packages disabled.
func (in *installation) dependencies(ctx context.Context) error {
	root, err := pluginRoot(in.path(filesDir))
	if err != nil {
		return err
	}
	in.plugin.Root = root
	dir := in.path(filesDir, root)
	missing, err := needsDependencies(dir)
	if !missing {
		return cmp.Or(in.begin(ctx, phaseDependencies, "No dependencies to install"), err)
	}
	if err := in.begin(ctx, phaseDependencies, "Installing npm dependencies..."); err != nil {
		return err
	}
	if in.npm == nil {
		if in.npm, err = findNPM(in.cfg.Log); err != nil {
			return err
		}
	}
	return in.npm.dependencies(ctx, dir)
}

// pluginRoot returns the folder that must contain the manifest, relative to files: the only top-level folder, as in archives of
// repositories and npm packages, or "." if there are several entries or files. A manifest in any deeper folder is ignored.
func pluginRoot(files string) (string, error) {
	entries, err := os.ReadDir(files)
	if err != nil {
		return "", err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return entries[0].Name(), nil
	}
	return ".", nil
}

// validate parses the manifest and checks that its program exists. The manifest is opened below the folder, so a link can't
// make the gateway read another file. It comes after the dependencies, because the program may be part of one.
func (in *installation) validate(ctx context.Context) error {
	if err := in.begin(ctx, phaseValidating, "Validating the plugin..."); err != nil {
		return err
	}
	dir := in.path(filesDir, in.plugin.Root)
	f, err := os.OpenInRoot(dir, ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing, so this is not a Leat plugin", ManifestFile)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return err
	}
	m, err := ParseManifest(b)
	if err != nil {
		return err
	}
	if isLocal(m.Command[0]) {
		program, err := os.Stat(filepath.Join(dir, filepath.FromSlash(m.Command[0])))
		switch {
		case err != nil:
			return fmt.Errorf("%s: command: %s is not among the plugin's files", ManifestFile, m.Command[0])
		case !program.Mode().IsRegular():
			return fmt.Errorf("%s: command: %s is not a regular file", ManifestFile, m.Command[0])
		}
	}
	in.plugin.Manifest, in.plugin.Origin, in.plugin.Folder, in.plugin.Dir = m, in.req.origin(in.version), in.folder, dir
	in.plugin.Installed = time.Now().UTC().Truncate(time.Second)
	in.displayName = cmp.Or(in.displayName, m.Name)
	return nil
}

// configure checks with the runtime that the plugin can run, and that it may take its name. A plugin may only be replaced by one of
// the same lineage, so that a package can't take over the name of another one.
func (in *installation) configure(ctx context.Context) error {
	if err := in.begin(ctx, phaseConfiguring, "Configuring %s...", in.plugin.Manifest.Name); err != nil {
		return err
	}
	if old, ok := in.find(in.plugin.Manifest.Name); ok && lineage(old.Origin) != lineage(in.plugin.Origin) {
		return fmt.Errorf("plugin %s is already installed from %s; remove it first", old.Manifest.Name, old.Origin)
	}
	return in.cfg.Runtime.Configure(in.plugin)
}

// restart tries the plugin, commits the installation and starts it. If the start fails, the previous index is restored. The old
// version's files are deleted last, after nothing refers to them. The archive and npm's working folder are deleted before the commit,
// because sweep only deletes folders that the index doesn't list.
func (in *installation) restart(ctx context.Context) error {
	if err := in.begin(ctx, phaseRestarting, "Starting %s...", in.plugin.Manifest.Name); err != nil {
		return err
	}
	// A plugin that doesn't start must not replace a version that works, so it is tried before the commit.
	if err := in.cfg.Runtime.Try(ctx, in.plugin); err != nil {
		return err
	}
	for _, rubbish := range []string{"archive", "work"} {
		if err := os.RemoveAll(in.path(rubbish)); err != nil {
			return err
		}
	}
	before := in.List()
	name := in.plugin.Manifest.Name
	old, had := in.find(name)
	after := append(slices.DeleteFunc(slices.Clone(before), func(p Plugin) bool { return p.Manifest.Name == name }), in.plugin)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := in.commit(after); err != nil {
		return err
	}
	if err := in.cfg.Runtime.Run(in.plugin); err != nil {
		return errors.Join(err, in.commit(before))
	}
	if had {
		in.discard(old.Folder)
	}
	return nil
}
