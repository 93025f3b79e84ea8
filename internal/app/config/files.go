package config

import (
	"path/filepath"
	"strings"
)

// Files configures files that people and agents exchange.
type Files struct {
	// Workspace is a folder that the gateway shares with its agents. If it is empty, none is shared.
	Workspace string `yaml:"workspace"`
}

// check refuses workspaces that would be dangerous. Agents can read and write everything in the workspace, so it must
// neither contain the data folder, which has the conversations of all users, nor be inside it, nor be a whole disk.
// Control characters would end up in the prompts of agents that get the paths.
func (f *Files) check(data string, bad reporter) {
	if f.Workspace == "" {
		return
	}
	const key = "files.workspace"
	dir := filepath.Clean(f.Workspace)
	// within reports whether dir is inside of, or equal to it. It compares paths only; links are not resolved.
	within := func(dir, of string) bool {
		rel, err := filepath.Rel(of, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	switch data, err := filepath.Abs(data); {
	case !filepath.IsAbs(dir):
		bad(key, "%q must be an absolute path, because agents get the paths of its files", f.Workspace)
	case filepath.Dir(dir) == dir:
		bad(key, "%q is the root of the disk; use a separate folder", f.Workspace)
	case strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }):
		bad(key, "%q contains control characters", f.Workspace)
	case err == nil && (within(dir, data) || within(data, dir)):
		bad(key, "%q must not contain the data folder (%s) or be inside it, because agents can read the workspace", f.Workspace, data)
	}
}
