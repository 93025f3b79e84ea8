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

// Phase is how far an installation is.
type Phase string

// The phases in their order; an installation that fails goes from any of them to PhaseError.
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

// Progress tells of an installation. Plugin is the name of the package, or of the plugin once that is known; it may be empty.
type Progress struct {
	Plugin  string
	Phase   Phase
	Message string
}

// Runtime is what runs plugins.
type Runtime interface {
	// Configure refuses a plugin that can't be what it wants to be here.
	Configure(p Plugin) error
	// Try runs it until it is ready, and ends it; the error says why it is not.
	Try(ctx context.Context, p Plugin) error
	// Run has it run from now on, in the place of the one under its name.
	Run(p Plugin) error
	// Stop ends it, and returns when nothing of it runs.
	Stop(name string)
}

// installation is one that is under way.
type installation struct {
	*Store
	req    Request
	report func(Progress)

	displayName string // what it is called in what is told
	phase       Phase
	folder      string // below the store's
	version     string // of an npm package
	npm         *npm
	plugin      Plugin
}

// Install installs a plugin, or puts another version in the place of one that is installed, and tells of its phases. Where it
// fails nothing has changed, and the error is a *Failure, or wraps ErrInvalid or ErrBusy where nothing was begun.
func (s *Store) Install(ctx context.Context, req Request, report func(Progress)) (Plugin, error) {
	if err := req.Check(); err != nil {
		return Plugin{}, err
	}
	release, err := s.acquire()
	if err != nil {
		return Plugin{}, err
	}
	defer release()
	in := &installation{Store: s, req: req, report: report, displayName: req.Name, folder: strings.ToLower(rand.Text())}
	if err := in.run(ctx); err != nil {
		s.discard(in.folder)
		if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
			err = context.Cause(ctx) // what failed, failed by it
		}
		f := &Failure{Phase: in.phase, Err: err}
		in.reportProgress(phaseError, "%v", f)
		return Plugin{}, f
	}
	in.phase = phaseComplete
	in.reportProgress(phaseComplete, "%s %s is installed", in.plugin.Manifest.Name, in.plugin.Manifest.Version)
	return in.plugin, nil
}

func (in *installation) reportProgress(p Phase, format string, args ...any) {
	in.report(Progress{Plugin: in.displayName, Phase: p, Message: fmt.Sprintf(format, args...)})
}

// begin enters a phase, unless nobody wants the plugin any more.
func (in *installation) begin(ctx context.Context, p Phase, format string, args ...any) error {
	in.phase = p
	in.reportProgress(p, format, args...)
	return context.Cause(ctx)
}

func (in *installation) path(elem ...string) string {
	return filepath.Join(append([]string{in.cfg.Dir, in.folder}, elem...)...)
}

func (in *installation) run(ctx context.Context) error {
	if err := in.resolve(ctx); err != nil {
		return err
	}
	if err := in.download(ctx); err != nil {
		return err
	}
	if err := in.dependencies(ctx); err != nil {
		return err
	}
	if err := in.validate(ctx); err != nil {
		return err
	}
	if err := in.begin(ctx, phaseConfiguring, "Configuring %s...", in.plugin.Manifest.Name); err != nil {
		return err
	}
	if err := in.configure(); err != nil {
		return err
	}
	return in.restart(ctx)
}

// resolve finds out what it is that was asked for.
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
		// Of its own, so that npm does not look for a project in the folders above.
		if err := os.Mkdir(in.path("work"), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(in.path("work", "package.json"), []byte("{}\n"), 0o600); err != nil {
			return err
		}
		in.version, err = in.npm.version(ctx, in.path("work"), in.req.Name, cmp.Or(in.req.Version, "latest"))
		return err
	case in.req.Folder != "":
		info, err := os.Stat(in.req.Folder)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is no folder", in.req.Folder)
		}
		return err
	case !remote(in.req.Archive):
		info, err := os.Stat(in.req.Archive)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is no file", in.req.Archive)
		}
		return err
	}
	return nil
}

// download brings its files.
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
	if in.req.SHA256 != "" && !sameSum(in.plugin.SHA256, in.req.SHA256) {
		return fmt.Errorf("the archive's sha256 is %s, not %s", in.plugin.SHA256, strings.ToLower(in.req.SHA256))
	}
	return unpack(archive, files)
}

// archive brings the archive, with its checksum.
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

// dependencies brings what the package needs, by npm.
func (in *installation) dependencies(ctx context.Context) error {
	root, err := pluginRoot(in.path(filesDir))
	if err != nil {
		return err
	}
	in.plugin.Root = root
	dir := in.path(filesDir, root)
	missing, err := needsDependencies(dir)
	if !missing {
		if berr := in.begin(ctx, phaseDependencies, "There is nothing more to install"); berr != nil {
			return berr
		}
		return err
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

// home finds the folder with the plugin: the one with the manifest, which may be the one folder that an archive consists of.
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

// validate looks whether the files are a plugin.
func (in *installation) validate(ctx context.Context) error {
	if err := in.begin(ctx, phaseValidating, "Validating the plugin..."); err != nil {
		return err
	}
	dir := in.path(filesDir, in.plugin.Root)
	f, err := os.OpenInRoot(dir, ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: it is no plugin of this gateway", ManifestFile)
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
			return fmt.Errorf("%s: command: %s is not among its files", ManifestFile, m.Command[0])
		case !program.Mode().IsRegular():
			return fmt.Errorf("%s: command: %s is no file", ManifestFile, m.Command[0])
		}
	}
	in.plugin.Manifest, in.plugin.Origin, in.plugin.Folder, in.plugin.Dir = m, in.req.origin(in.version), in.folder, dir
	in.plugin.Installed = time.Now().UTC().Truncate(time.Second)
	if in.displayName == "" {
		in.displayName = m.Name
	}
	return nil
}

// configure looks whether the plugin can be what it wants to be.
func (in *installation) configure() error {
	if old, ok := in.find(in.plugin.Manifest.Name); ok && lineage(old.Origin) != lineage(in.plugin.Origin) {
		return fmt.Errorf("a plugin %s is installed from %s; remove that first", old.Manifest.Name, old.Origin)
	}
	return in.cfg.Runtime.Configure(in.plugin)
}

// restart has it run: for a moment first, to see that it does, and then for good.
func (in *installation) restart(ctx context.Context) error {
	if err := in.begin(ctx, phaseRestarting, "Starting %s...", in.plugin.Manifest.Name); err != nil {
		return err
	}
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
