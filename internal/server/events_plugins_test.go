package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/internal/service/plugins"
)

// idle is a runtime that runs nothing: what is installed is not started here.
type idle struct{}

func (idle) Configure(plugins.Plugin) error            { return nil }
func (idle) Try(context.Context, plugins.Plugin) error { return nil }
func (idle) Run(plugins.Plugin) error                  { return nil }
func (idle) Stop(string)                               {}

func openPlugins(t *testing.T) *plugins.Store {
	t.Helper()
	s, err := plugins.Open(plugins.Config{Dir: t.TempDir(), Runtime: idle{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// installEvent installs a plugin from a folder, through all phases.
func installEvent(t *testing.T, st *stage) {
	dir := t.TempDir()
	manifest := `{"protocol":1,"name":"weather","version":"1.2.0","kind":"agent","command":["weather"]}`
	if err := os.WriteFile(filepath.Join(dir, plugins.ManifestFile), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	f := st.join("")
	st.call("POST", "/api/plugins/install", fmt.Sprintf(`{"path":%q}`, dir))
	f.hears("install-progress",
		`{"type":"install-progress","phase":"resolving","message":"Looking up folder:`+dir+`..."}`,
		`{"type":"install-progress","phase":"downloading","message":"Downloading folder:`+dir+`..."}`,
		`{"type":"install-progress","phase":"installing-deps","message":"No dependencies to install"}`,
		`{"type":"install-progress","phase":"validating","message":"Validating the plugin..."}`,
		`{"type":"install-progress","pluginName":"weather","phase":"configuring","message":"Configuring weather..."}`,
		`{"type":"install-progress","pluginName":"weather","phase":"restarting","message":"Starting weather..."}`,
		`{"type":"install-progress","pluginName":"weather","phase":"complete","message":"weather 1.2.0 is installed"}`)
}
