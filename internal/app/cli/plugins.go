package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	leat "github.com/leat-dev/leat/clients/go"
)

type pluginsCmd struct {
	Install pluginsInstallCmd `cmd:"" help:"Install a plugin: an npm package, a folder or an archive of the gateway's machine, or an archive at an https address."`
	List    pluginsListCmd    `cmd:"" help:"List the plugins that are installed."`
	Remove  pluginsRemoveCmd  `cmd:"" help:"Remove a plugin."`
}

type pluginsInstallCmd struct {
	operator
	What   string `arg:"" help:"NAME or NAME@VERSION of an npm package, the path of a folder or archive (./…), or an address." placeholder:"PLUGIN"`
	SHA256 string `name:"sha256" help:"Checksum of the archive, in hex; archives need it." placeholder:"HEX"`
	JSON   bool   `name:"json" help:"As JSON."`
}

func (c *pluginsInstallCmd) Run(a *app) error {
	req, err := c.request()
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r := c.remote()
	out, err := r.client().InstallPlugin(ctx, req)
	if err != nil || c.JSON {
		return a.printed(out, r.explain(err))
	}
	fmt.Fprintf(a.out, "%s %s is installed and runs, in %s\n", out.Name, out.Version, out.Path)
	return nil
}

// request tells packages from paths as npm does: a path begins with a dot or a slash.
func (c *pluginsInstallCmd) request() (leat.PluginRequest, error) {
	if strings.HasPrefix(c.What, "http://") || strings.HasPrefix(c.What, "https://") {
		return leat.PluginRequest{Archive: c.What, SHA256: c.SHA256}, nil
	}
	if c.What != "." && !strings.HasPrefix(c.What, "./") && !strings.HasPrefix(c.What, "../") && !filepath.IsAbs(c.What) {
		req := leat.PluginRequest{Name: c.What, SHA256: c.SHA256}
		if i := strings.LastIndexByte(c.What, '@'); i > 0 {
			req.Name, req.Version = c.What[:i], c.What[i+1:]
		}
		return req, nil
	}
	path, err := filepath.Abs(c.What)
	if err != nil {
		return leat.PluginRequest{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return leat.PluginRequest{}, err
	}
	if info.IsDir() {
		return leat.PluginRequest{Path: path, SHA256: c.SHA256}, nil
	}
	return leat.PluginRequest{Archive: path, SHA256: c.SHA256}, nil
}

type pluginsListCmd struct {
	operator
	JSON bool `name:"json" help:"As JSON."`
}

func (c *pluginsListCmd) Run(a *app) error {
	r := c.remote()
	all, err := r.client().Plugins(a.ctx)
	if err != nil || c.JSON {
		return a.printed(all, r.explain(err))
	}
	if len(all) == 0 {
		fmt.Fprintln(a.err, "No plugin is installed.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, p := range all {
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
	Name string `arg:"" help:"Its name."`
}

func (c *pluginsRemoveCmd) Run(a *app) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	r := c.remote()
	return r.explain(r.client().RemovePlugin(ctx, c.Name))
}
