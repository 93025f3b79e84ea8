package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/leat-dev/leat/internal/server/native"
)

// A release has these set by the linker (see internal/tools/dist). Any other build knows what Go wrote down of the checkout.
var release, releaseCommit, releaseDate string

// build says what was built, of what.
type build struct {
	Version string `json:"version"` // such as v1.2.0; devel where nobody knows
	// Commit and Date are of the last commit; empty where it was not built from a checkout.
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // RFC 3339
	Modified bool   `json:"modified,omitempty"`
	Protocol string `json:"protocol"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// buildOf reads what the compiler wrote down.
func buildOf(info *debug.BuildInfo) build {
	b := build{Version: "devel", Protocol: native.Protocol, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		return b
	}
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

// thisBuild describes the program that runs.
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

// print writes the build for people.
func (b build) print(w io.Writer) error {
	commit := cmp.Or(b.Commit, "unknown")
	if b.Modified {
		commit += ", changed since"
	}
	_, err := fmt.Fprintf(w, "leat %s, protocol %s, %s %s/%s\ncommit %s\ndate   %s\n", b.Version, b.Protocol, b.Go, b.OS, b.Arch, commit, cmp.Or(b.Date, "unknown"))
	return err
}

type versionCmd struct {
	JSON bool `name:"json" help:"As JSON."`
}

func (c *versionCmd) Run(a *app) error {
	if c.JSON {
		return json.NewEncoder(a.out).Encode(thisBuild())
	}
	return thisBuild().print(a.out)
}

// platformNote says what a system is not meant for, empty where there is nothing to say. A gateway's promises rest on what
// was measured and killed again and again, which was Linux and macOS.
func platformNote(goos string) string {
	if goos == "windows" {
		return "on Windows, leat serve is for development; serve others from Linux or macOS"
	}
	return ""
}
