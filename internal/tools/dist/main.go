package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// target is a platform that a release is made for, with Go's names for the operating system and the processor.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// targets are all platforms. On Windows the client commands and development are supported.
var targets = []target{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func main() {
	outDir := flag.String("out", "dist", "output folder, which is replaced")
	names := flag.String("targets", "", "platforms, separated by commas, such as linux/amd64; empty means all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *outDir, *names); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// run builds the release into a temporary folder next to outDir, which is on the same file system, and renames it at
// the end. If the build fails or is interrupted, the temporary folder is removed and outDir is unchanged. Then run
// prints the files with their sizes in bytes.
func run(ctx context.Context, outDir, names string) (err error) {
	platforms, err := choose(names)
	if err != nil {
		return err
	}
	// MkdirTemp in the same parent makes the rename atomic.
	outDir, err = filepath.Abs(outDir)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(outDir), ".dist-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := build(ctx, dir, platforms)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(outDir); err != nil {
		return err
	}
	if err := os.Rename(dir, outDir); err != nil {
		return err
	}
	if err := os.Chmod(outDir, 0o755); err != nil { // MkdirTemp creates a folder that only its owner can read
		return err
	}
	fmt.Printf("leat %s, commit %s\n", r.version, r.commit)
	if r.modified() {
		fmt.Println("The tree has uncommitted changes: this is not a release.")
	}
	files, err := os.ReadDir(outDir)
	if err != nil {
		return err
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return err
		}
		fmt.Printf("%10d  %s\n", info.Size(), f.Name())
	}
	return nil
}

// choose returns the platforms with the given names, or all if names is empty. A name that isn't in targets is an
// error, so that a misspelled name doesn't give a release without a platform.
func choose(names string) ([]target, error) {
	if names == "" {
		return targets, nil
	}
	var platforms []target
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("unknown platform %q; use %v", name, targets)
		}
		platforms = append(platforms, targets[i])
	}
	return platforms, nil
}

// build compiles and packs the platforms into dir. The commit and the documents are read once, at the beginning, so
// that all archives have the same.
func build(ctx context.Context, dir string, platforms []target) (release, error) {
	r, err := checkedOut()
	if err != nil {
		return r, err
	}
	docs, err := documents()
	if err != nil {
		return r, err
	}
	scratch, err := os.MkdirTemp("", "leat-dist")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // the system cleans its temporary folder
	for _, t := range platforms {
		fmt.Println("build", t)
		binary := filepath.Join(scratch, t.os+"-"+t.arch, t.program())
		if err := compile(ctx, binary, r, t); err != nil {
			return r, err
		}
		if err := pack(dir, r, t, binary, docs); err != nil {
			return r, fmt.Errorf("%s: %w", t, err)
		}
	}
	if err := packDetector(dir, r); err != nil {
		return r, err
	}
	return r, finish(dir, r)
}

// program returns the file name of the program.
func (t target) program() string {
	if t.os == "windows" {
		return "leat.exe"
	}
	return "leat"
}

// variables is the path of the package whose variables contain the version; see compile.
const variables = "github.com/leat-dev/leat/internal/app/cli."

// compile builds the program statically and without debug information, with the version, commit and date of r. Go's
// own record of the checkout is turned off, because it differs between a clone and a worktree. The environment is
// pinned, so that GOFLAGS or GOAMD64 of the machine don't change the bytes. The oldest processors of each
// architecture are supported.
func compile(ctx context.Context, path string, r release, t target) error {
	flags := fmt.Sprintf("-s -w -buildid= -X %[1]srelease=%[2]s -X %[1]sreleaseCommit=%[3]s -X %[1]sreleaseDate=%[4]s",
		variables, r.version, r.commit, r.time.UTC().Format(time.RFC3339))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", path, "./cmd/leat")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", t, err, output)
	}
	return nil
}

// documents reads the files that every archive contains besides the program, from the root of the tree: what docs/deploy installs, and the
// documentation without its pictures. A missing file is an error, because then dist runs in another folder and every
// archive would be incomplete.
func documents() ([]file, error) {
	var docs []file
	add := func(path, name string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("dist must run in the root of the tree: %w", err)
		}
		docs = append(docs, file{name, 0o644, b})
		return nil
	}
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md", "leat.example.yaml"} {
		if err := add(name, name); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"leat.bash", "_leat", "leat.fish"} {
		if err := add("internal/app/cli/completion/"+name, "completions/"+name); err != nil {
			return nil, err
		}
	}
	err := filepath.WalkDir("docs", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join("docs", "images"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		return add(path, filepath.ToSlash(path))
	})
	return docs, err
}
