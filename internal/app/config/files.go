package config

import (
	"path/filepath"
	"strings"
)

// Files says where files are shared with agents.
type Files struct {
	// Workspace is a folder in which people and agents name files to each other by their paths; empty is none.
	Workspace string `yaml:"workspace"`
}

func (f *Files) check(data string, bad func(key, format string, args ...any)) {
	if f.Workspace == "" {
		return
	}
	const key = "files.workspace"
	dir := filepath.Clean(f.Workspace)
	within := func(dir, of string) bool {
		rel, err := filepath.Rel(of, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	switch data, err := filepath.Abs(data); {
	case !filepath.IsAbs(dir):
		bad(key, "%q; it has to be a whole path, since agents are told the paths of its files", f.Workspace)
	case filepath.Dir(dir) == dir:
		bad(key, "%q is the whole disk; give it a folder of its own", f.Workspace)
	case strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }):
		bad(key, "%q can't be part of a line", f.Workspace)
	case err == nil && (within(dir, data) || within(data, dir)):
		bad(key, "%q and the folder of the gateway's data (%s) may not lie in each other: agents reach the one and not the other", f.Workspace, data)
	}
}
