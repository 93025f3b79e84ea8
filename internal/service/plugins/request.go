package plugins

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// Request says what is to be installed: an npm package, a folder of this machine, or an archive.
type Request struct {
	Name    string // of an npm package
	Version string // of the package, or a tag; empty is latest
	Folder  string // an absolute path
	Archive string // an absolute path, or a URL, of a .tar.gz or .zip
	SHA256  string // of the archive, in hex
}

var (
	// packageName is that of Eliza's clients, but does not begin like an option.
	packageName = regexp.MustCompile(`^(@[a-z0-9~][a-z0-9-._~]*/)?[a-z0-9~][a-z0-9-._~]*$`)
	// packageVersion is a version or a tag: no range, no address, no path.
	packageVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
)

// maxName bounds the name of a package, and a version.
const maxName = 214

// Check refuses what can't be installed, before anything is done. The error wraps ErrInvalid.
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
		return bad("one of name, path and archive is needed")
	case r.Name == "" && r.Version != "":
		return bad("version belongs to the name of an npm package")
	case r.Archive == "" && r.SHA256 != "":
		return bad("sha256 belongs to an archive")
	case r.Name != "" && (len(r.Name) > maxName || !packageName.MatchString(r.Name)):
		return bad("%.100q is no name of an npm package", r.Name)
	case r.Version != "" && (len(r.Version) > maxName || !packageVersion.MatchString(r.Version)):
		return bad("%.100q is no version; it is such as 1.2.0, or a tag", r.Version)
	case r.Folder != "" && !filepath.IsAbs(r.Folder):
		return bad("path %.200q is not absolute", r.Folder)
	}
	if r.Archive == "" {
		return nil
	}
	if b, err := hex.DecodeString(r.SHA256); err != nil || len(b) != 32 {
		return bad("an archive needs its sha256, as 64 digits in hex")
	}
	if remote(r.Archive) {
		if u, err := url.Parse(r.Archive); err != nil || u.Host == "" {
			return bad("the archive's address is no URL")
		}
	} else if !filepath.IsAbs(r.Archive) {
		return bad("archive %.200q is neither an https address nor an absolute path", r.Archive)
	}
	return nil
}

// remote reports whether an archive has to be fetched.
func remote(archive string) bool {
	return strings.HasPrefix(archive, "https://") || strings.HasPrefix(archive, "http://")
}

// origin says where a plugin came from, without what an address may hold of secrets.
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

// line is what two origins share of which one may take the place of the other: versions of one package, or whatever the
// admin brings as folder or archive.
func lineage(origin string) string {
	spec, ok := strings.CutPrefix(origin, "npm:")
	if !ok {
		return ""
	}
	return spec[:strings.LastIndexByte(spec, '@')]
}
