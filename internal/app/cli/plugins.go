package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	leat "github.com/leat-dev/leat/clients/go"
)

// pluginsCmd manages the plugins of a running gateway. The gateway downloads and runs them, so paths and archives are
// on its machine, not on that of the user.
type pluginsCmd struct {
	Install pluginsInstallCmd `cmd:"" help:"Install a plugin: an npm package, a folder or an archive on the gateway's machine, or an archive at an https URL."`
	List    pluginsListCmd    `cmd:"" help:"List the installed plugins."`
	Remove  pluginsRemoveCmd  `cmd:"" help:"Remove a plugin."`
}

// pluginsInstallCmd installs a plugin and returns when it runs. If the user interrupts the command, the gateway
// reverts the installation.
type pluginsInstallCmd struct {
	operator
	Plugin string `arg:"" help:"NAME or NAME@VERSION of an npm package, the path of a folder or archive (./…), or a URL." placeholder:"PLUGIN"`
	SHA256 string `name:"sha256" help:"SHA-256 checksum of the archive in hex; required for archives." placeholder:"HEX"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run asks the running gateway to install a plugin, so that the plugin can be used at once.
func (c *pluginsInstallCmd) Run(a *app) error {
	req, err := c.request()
	if err != nil {
		return err
	}
	ctx, cancel := a.interruptible()
	defer cancel()
	installed, err := c.client().InstallPlugin(ctx, req)
	if err != nil || c.JSON {
		return a.printJSON(installed, c.explain(err))
	}
	fmt.Fprintf(a.stdout, "%s %s is installed in %s and running\n", installed.Name, installed.Version, installed.Path)
	return nil
}

// request distinguishes packages from paths as npm does: a path begins with a dot or a slash. A path is made
// absolute, because the gateway may run in another folder. A scoped package begins with @ (@scope/name@1.0.0), so
// only a later @ separates the version.
func (c *pluginsInstallCmd) request() (leat.PluginRequest, error) {
	// The gateway downloads the archive at a URL; this machine need not be able to reach it.
	if strings.HasPrefix(c.Plugin, "http://") || strings.HasPrefix(c.Plugin, "https://") {
		return leat.PluginRequest{Archive: c.Plugin, SHA256: c.SHA256}, nil
	}
	// Everything that is not a path is the name of a package, even if a folder with that name exists here.
	if c.Plugin != "." && !strings.HasPrefix(c.Plugin, "./") && !strings.HasPrefix(c.Plugin, "../") && !filepath.IsAbs(c.Plugin) {
		req := leat.PluginRequest{Name: c.Plugin, SHA256: c.SHA256}
		if i := strings.LastIndexByte(c.Plugin, '@'); i > 0 {
			req.Name, req.Version = c.Plugin[:i], c.Plugin[i+1:]
		}
		return req, nil
	}
	path, err := filepath.Abs(c.Plugin)
	if err != nil {
		return leat.PluginRequest{}, err
	}
	// A folder is installed as it is, and a file must be an archive. The path is examined on this machine, on which
	// the gateway must run as well.
	info, err := os.Stat(path)
	if err != nil {
		return leat.PluginRequest{}, err
	}
	if info.IsDir() {
		return leat.PluginRequest{Path: path, SHA256: c.SHA256}, nil
	}
	return leat.PluginRequest{Archive: path, SHA256: c.SHA256}, nil
}

// pluginsListCmd lists the plugins with their state. For a plugin that is not ready, the state includes its last
// error.
type pluginsListCmd struct {
	operator
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the installed plugins with their states.
func (c *pluginsListCmd) Run(a *app) error {
	installed, err := c.client().Plugins(a.ctx)
	if err != nil || c.JSON {
		return a.printJSON(installed, c.explain(err))
	}
	if len(installed) == 0 {
		fmt.Fprintln(a.stderr, "No plugins are installed.")
		return nil
	}
	w := a.table()
	for _, p := range installed {
		state := "ready"
		if !p.Ready {
			state = "not ready"
			if p.Error != "" {
				state += ": " + p.Error
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Version, p.Kind, p.Origin, state)
	}
	return w.Flush()
}

type pluginsRemoveCmd struct {
	operator
	Name string `arg:"" help:"Name of the plugin."`
}

func (c *pluginsRemoveCmd) Run(a *app) error {
	return c.explain(c.client().RemovePlugin(a.ctx, c.Name))
}
