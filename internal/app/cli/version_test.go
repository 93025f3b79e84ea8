package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuildOf(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	var out strings.Builder
	if err := buildOf(info).print(&out); err != nil {
		t.Fatal(err)
	}
	want := "leat v1.2.0, protocol leat/1, " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH +
		"\ncommit 0123456789abcdef, with local changes\ndate   2026-01-02T03:04:05Z\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	for _, info := range []*debug.BuildInfo{nil, {}, {Main: debug.Module{Version: "(devel)"}}} {
		out.Reset()
		if err := buildOf(info).print(&out); err != nil || !strings.HasPrefix(out.String(), "leat devel, ") || !strings.Contains(out.String(), "commit unknown\ndate   unknown\n") {
			t.Errorf("%+v: %v\n%s", info, err, &out)
		}
	}
}

func TestPlatformNote(t *testing.T) {
	if !strings.Contains(platformNote("windows"), "development") || platformNote("linux")+platformNote("darwin") != "" {
		t.Error(platformNote("windows"), platformNote("linux"))
	}
}
