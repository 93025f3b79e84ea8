package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/leat-dev/leat/server/native"
)

// release is set by the linker when a release is built.
var release string

// version returns the version of the build, such as v1.2.0 or devel.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

type versionCmd struct {
	JSON bool `name:"json" help:"As JSON."`
}

func (c *versionCmd) Run(a *app) error {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	if c.JSON {
		return json.NewEncoder(a.out).Encode(map[string]string{
			"version": version(), "commit": commit, "protocol": native.Protocol, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintf(a.out, "leat %s, protocol %s, %s %s/%s\n", version(), native.Protocol, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
