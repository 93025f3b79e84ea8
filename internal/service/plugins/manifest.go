package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// ManifestFile is the name of the manifest in a plugin's folder.
	ManifestFile = "leat-plugin.json"
	// Protocol is the version of the plugin protocol that this gateway speaks.
	Protocol = 1

	maxManifest = 64 << 10 // size limit of the manifest, bytes
	maxText     = 200      // length limit of a description or a version, bytes
	maxWords    = 64       // limit for the words of a command and for the names of variables
	maxWord     = 4096     // length limit of a word of a command, bytes
)

// The kinds of plugins. They decide which part of the gateway runs the plugin.
const (
	KindAgent   = "agent"
	KindChannel = "channel"
)

// Manifest describes a plugin. Its schema is docs/plugin.schema.json.
type Manifest struct {
	Schema   string `json:"$schema,omitempty"` // ignored; editors use it
	Protocol int    `json:"protocol"`
	// Name becomes the name of the agent or channel.
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Kind        string `json:"kind"`
	// Command is the program and its arguments. A program that begins with ./ is in the plugin's folder; another one is found
	// in PATH. The working directory is the plugin's folder.
	Command []string `json:"command"`
	// Env lists variables of the gateway's environment that are passed to the plugin. It gets no others.
	Env []string `json:"env,omitempty"`
}

var (
	// pluginName matches valid names, which are the same as for configured agents.
	pluginName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// ParseManifest parses and validates a manifest. Unknown fields are an error, because a misspelled one would be ignored
// silently.
func ParseManifest(b []byte) (Manifest, error) {
	var m Manifest
	fail := func(format string, args ...any) (Manifest, error) {
		return Manifest{}, fmt.Errorf(ManifestFile+": "+format, args...)
	}
	if len(b) > maxManifest {
		return fail("larger than %d bytes", maxManifest)
	}
	if !utf8.Valid(b) {
		return fail("not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return fail("%w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fail("unexpected data after the JSON object")
	}
	switch {
	case m.Protocol != Protocol:
		return fail("protocol is %d; this gateway speaks %d", m.Protocol, Protocol)
	case !pluginName.MatchString(m.Name):
		return fail("invalid name %q: use 1 to 64 letters, digits, dashes, underscores and dots", m.Name)
	case m.Kind != KindAgent && m.Kind != KindChannel:
		return fail("invalid kind %q: use %s or %s", m.Kind, KindAgent, KindChannel)
	case m.Version == "" || !plain(m.Version, maxText):
		return fail("invalid version %q: use one line of 1 to %d bytes", m.Version, maxText)
	case !plain(m.Description, maxText):
		return fail("invalid description: use one line of at most %d bytes", maxText)
	case len(m.Command) == 0 || len(m.Command) > maxWords:
		return fail("invalid command: use a list of 1 to %d words", maxWords)
	case len(m.Env) > maxWords:
		return fail("env: more than %d variables", maxWords)
	}
	for _, w := range m.Command {
		if len(w) > maxWord || strings.ContainsRune(w, 0) {
			return fail("command: a word is longer than %d bytes or contains NUL", maxWord)
		}
	}
	if p := m.Command[0]; p == "" || strings.Contains(p, "\\") || strings.Contains(p, "/") && !isLocal(p) {
		return fail("command: invalid program %q: use a name found in PATH, or a path inside the plugin such as ./run", p)
	}
	for _, n := range m.Env {
		if !variable.MatchString(n) {
			return fail("env: invalid variable name %q", n)
		}
	}
	return m, nil
}

// isLocal reports whether a program is a clean path inside the plugin's folder, such as ./bin/run. A path that leaves the
// folder, even by a detour, isn't local.
func isLocal(p string) bool {
	relative, ok := strings.CutPrefix(p, "./")
	return ok && relative != "" && path.Clean(relative) == relative && !strings.HasPrefix(relative, "../") && relative != ".." && !strings.HasPrefix(relative, "/")
}

// plain reports whether s is one line of at most limit bytes, without control characters. Such a text can be shown in a
// terminal and in a log line.
func plain(s string, limit int) bool {
	return len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
