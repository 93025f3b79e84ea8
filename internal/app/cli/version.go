package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/leat-dev/leat/internal/server/native"
)

// The linker sets these variables for releases (see internal/tools/dist). Other builds use Go's build information about the checkout.
var release, releaseCommit, releaseDate string

// build describes the build of the program.
type build struct {
	Version string `json:"version"` // such as v1.2.0, or devel if unknown
	// Commit and Date describe the last commit. They are empty if the program was not built from a checkout.
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // RFC 3339
	Modified bool   `json:"modified,omitempty"`
	Protocol string `json:"protocol"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// buildOf returns the build that Go's build information describes, or an unknown one if info is nil. It is separate
// from [thisBuild], because a test binary has other build information.
func buildOf(info *debug.BuildInfo) build {
	b := build{Version: "devel", Protocol: native.Protocol, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		return b
	}
	// go install sets the version of the module. Builds in a checkout have a pseudo-version or "(devel)", depending
	// on the version of Go.
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// thisBuild returns the build of this program. The variables of a release replace Go's information about the
// checkout, which releases are built without.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	b := buildOf(info)
	if release != "" {
		b.Version, b.Commit, b.Date, b.Modified = release, releaseCommit, releaseDate, strings.HasSuffix(release, "-dirty")
	}
	return b
}

// version returns the version of the build, such as v1.2.0 or devel.
func version() string { return thisBuild().Version }

// print writes the build as text, in the form that bug reports should contain.
func (b build) print(w io.Writer) error {
	commit := cmp.Or(b.Commit, "unknown")
	if b.Modified {
		commit += ", with local changes"
	}
	_, err := fmt.Fprintf(w, "leat %s, protocol %s, %s %s/%s\ncommit %s\ndate   %s\n", b.Version, b.Protocol, b.Go, b.OS, b.Arch, commit, cmp.Or(b.Date, "unknown"))
	return err
}

// versionCmd prints the version. It is also the flag --version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *versionCmd) Run(a *app) error {
	if c.JSON {
		return a.printJSON(thisBuild(), nil)
	}
	return thisBuild().print(a.stdout)
}

// platformNote returns a note about the operating system, or "". Crash tests run on Linux and macOS only, so other systems are not
// recommended for production.
func platformNote(goos string) string {
	if goos == "windows" {
		return "Windows is supported for development only; use Linux or macOS in production"
	}
	return ""
}
