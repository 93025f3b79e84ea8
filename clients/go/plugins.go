package leat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// PluginRequest names the plugin to install: an npm package, a folder or archive on the gateway's machine, or the URL of an archive.
type PluginRequest struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Archive string `json:"archive,omitempty"`
	SHA256  string `json:"sha256,omitempty"` // of the archive
}

// InstalledPlugin is the result of an installation.
type InstalledPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"installPath"`
}

// Plugin is an installed plugin.
type Plugin struct {
	Name        string    `json:"name"`
	Version     string    `json:"version"`
	Kind        string    `json:"kind"` // agent or channel
	Description string    `json:"description,omitempty"`
	Origin      string    `json:"origin"`
	SHA256      string    `json:"sha256,omitempty"`
	Installed   time.Time `json:"installedAt"`
	Ready       bool      `json:"ready"`
	Error       string    `json:"error,omitempty"`
}

// InstallPlugin installs a plugin and returns when it runs. If ctx ends before, the gateway reverts the installation.
func (c *Client) InstallPlugin(ctx context.Context, r PluginRequest) (InstalledPlugin, error) {
	var result struct {
		Plugin InstalledPlugin `json:"plugin"`
	}
	body, err := json.Marshal(r)
	if err != nil {
		return result.Plugin, fmt.Errorf("leat: encode request: %w", err)
	}
	err = c.callWithoutLimit(ctx, http.MethodPost, "/api/plugins/install", body, &result)
	return result.Plugin, err
}

// Plugins returns the installed plugins.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) {
	var result struct {
		Plugins []Plugin `json:"plugins"`
	}
	err := c.call(ctx, true, http.MethodGet, "/api/plugins", nil, nil, &result)
	return result.Plugins, err
}

// RemovePlugin stops a plugin and removes its files.
func (c *Client) RemovePlugin(ctx context.Context, name string) error {
	var result struct{}
	return c.callWithoutLimit(ctx, http.MethodDelete, "/api/plugins/"+url.PathEscape(name), nil, &result)
}
