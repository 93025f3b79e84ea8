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
	// ManifestFile is the file in a plugin's folder that says what it is.
	ManifestFile = "leat-plugin.json"
	// Protocol is the version of the protocol that installed plugins speak.
	Protocol = 1

	maxManifest = 64 << 10
	maxText     = 200 // bytes of a description or a version
	maxWords    = 64  // of a command, and names of variables
	maxWord     = 4096
)

// The kinds of plugins.
const (
	KindAgent   = "agent"
	KindChannel = "channel"
)

// Manifest says what a plugin is. docs/plugin.schema.json is its schema.
type Manifest struct {
	Schema   string `json:"$schema,omitempty"` // for editors
	Protocol int    `json:"protocol"`
	// Name is that of the agent or channel.
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Kind        string `json:"kind"`
	// Command is the program with its arguments. A program that begins with ./ lies in the plugin's folder, in which it runs.
	Command []string `json:"command"`
	// Env names variables of the gateway's environment that it needs.
	Env []string `json:"env,omitempty"`
}

var (
	// pluginName is what agents may be named.
	pluginName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// ParseManifest reads a manifest. The error says what is wrong with it.
func ParseManifest(b []byte) (Manifest, error) {
	var m Manifest
	fail := func(format string, args ...any) (Manifest, error) {
		return Manifest{}, fmt.Errorf(ManifestFile+": "+format, args...)
	}
	if len(b) > maxManifest {
		return fail("it has more than %d bytes", maxManifest)
	}
	if !utf8.Valid(b) {
		return fail("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return fail("%w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fail("something follows the JSON object")
	}
	switch {
	case m.Protocol != Protocol:
		return fail("protocol is %d; this gateway speaks %d", m.Protocol, Protocol)
	case !pluginName.MatchString(m.Name):
		return fail("name %q: it has 1 to 64 letters, digits, dashes, underscores and dots", m.Name)
	case m.Kind != KindAgent && m.Kind != KindChannel:
		return fail("kind %q: it is %s or %s", m.Kind, KindAgent, KindChannel)
	case m.Version == "" || !plain(m.Version, maxText):
		return fail("version %q: it is needed, and has at most %d bytes", m.Version, maxText)
	case !plain(m.Description, maxText):
		return fail("description: it is one line of at most %d bytes", maxText)
	case len(m.Command) == 0 || len(m.Command) > maxWords:
		return fail("command: it is a list of 1 to %d words", maxWords)
	case len(m.Env) > maxWords:
		return fail("env: it names at most %d variables", maxWords)
	}
	for _, w := range m.Command {
		if len(w) > maxWord || strings.ContainsRune(w, 0) {
			return fail("command: a word has at most %d bytes, and no NUL", maxWord)
		}
	}
	if p := m.Command[0]; p == "" || strings.Contains(p, "\\") || strings.Contains(p, "/") && !isLocal(p) {
		return fail("command: the program %q is neither a name, to be found in PATH, nor a path such as ./run inside the plugin", p)
	}
	for _, n := range m.Env {
		if !variable.MatchString(n) {
			return fail("env: %q is no name of a variable", n)
		}
	}
	return m, nil
}

// own reports whether a program is a path inside the plugin's folder.
func isLocal(p string) bool {
	relative, ok := strings.CutPrefix(p, "./")
	return ok && relative != "" && path.Clean(relative) == relative && !strings.HasPrefix(relative, "../") && relative != ".." && !strings.HasPrefix(relative, "/")
}

// plain reports whether a text is one line of at most so many bytes.
func plain(s string, limit int) bool {
	return len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
