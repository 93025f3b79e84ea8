package plugins

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// Request describes a plugin to install. Exactly one of Name, Folder and Archive is set.
type Request struct {
	Name    string // of an npm package
	Version string // version or tag of the package; empty means latest
	Folder  string // an absolute path
	Archive string // an absolute path, or a URL, of a .tar.gz or .zip
	SHA256  string // required for an archive, in hex
}

var (
	// packageName matches the package names that Eliza's clients accept. It also excludes a leading dash, which npm would take
	// for an option.
	packageName = regexp.MustCompile(`^(@[a-z0-9~][a-z0-9-._~]*/)?[a-z0-9~][a-z0-9-._~]*$`)
	// packageVersion matches a version or a tag. Ranges, URLs and paths aren't allowed.
	packageVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
)

// maxName is npm's length limit for package names, in bytes. It also applies to versions.
const maxName = 214

// Check validates the request before anything is fetched. The error wraps ErrInvalid. It has no side effects, so surfaces also
// call it to answer with a 400 before they stream progress.
func (r *Request) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	sources := 0
	for _, s := range []string{r.Name, r.Folder, r.Archive} {
		if s != "" {
			sources++
		}
	}
	switch {
	case sources != 1:
		return bad("set exactly one of name, path and archive")
	case r.Name == "" && r.Version != "":
		return bad("version requires the name of an npm package")
	case r.Archive == "" && r.SHA256 != "":
		return bad("sha256 requires an archive")
	case r.Name != "" && (len(r.Name) > maxName || !packageName.MatchString(r.Name)):
		return bad("invalid npm package name %.100q", r.Name)
	case r.Version != "" && (len(r.Version) > maxName || !packageVersion.MatchString(r.Version)):
		return bad("invalid version %.100q: use a version such as 1.2.0, or a tag", r.Version)
	case r.Folder != "" && !filepath.IsAbs(r.Folder):
		return bad("path %.200q must be absolute", r.Folder)
	}
	if r.Archive == "" {
		return nil
	}
	if b, err := hex.DecodeString(r.SHA256); err != nil || len(b) != 32 {
		return bad("an archive requires its sha256 as 64 hexadecimal digits")
	}
	if remote(r.Archive) {
		if u, err := url.Parse(r.Archive); err != nil || u.Host == "" {
			return bad("archive: invalid URL")
		}
	} else if !filepath.IsAbs(r.Archive) {
		return bad("archive %.200q must be an https URL or an absolute path", r.Archive)
	}
	return nil
}

// remote reports whether an archive must be downloaded. http is permitted too, because the checksum protects the content.
func remote(archive string) bool {
	return strings.HasPrefix(archive, "https://") || strings.HasPrefix(archive, "http://")
}

// origin describes the source of the plugin. It omits the query and the user of a URL, which may be secret. It is stored in the
// index and shown to admins.
func (r *Request) origin(version string) string {
	switch {
	case r.Name != "":
		return "npm:" + r.Name + "@" + version
	case r.Folder != "":
		return "folder:" + r.Folder
	case remote(r.Archive):
		u, err := url.Parse(r.Archive)
		if err != nil {
			return "archive:"
		}
		return "archive:" + u.Scheme + "://" + u.Host + u.EscapedPath()
	}
	return "archive:" + r.Archive
}

// lineage identifies the origins that may replace each other: all versions of one npm package have its name, and all folders
// and archives share the empty lineage. The version of an npm origin follows the last @, because the name of a scoped package begins
// with another one.
func lineage(origin string) string {
	spec, ok := strings.CutPrefix(origin, "npm:")
	if !ok {
		return ""
	}
	return spec[:strings.LastIndexByte(spec, '@')]
}
