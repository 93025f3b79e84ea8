package files

import (
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sniffed is the number of bytes from which a file's type is detected.
const Sniffed = 512

// ByName returns the MIME type that belongs to a file name's extension, or "". [MIME] uses it as a hint. The system's tables
// are only the fallback.
func ByName(name string) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".md": // missing in the type tables of some systems
		return "text/markdown"
	case ".webm", ".mp4", ".mov":
		return "video/" + strings.Replace(ext[1:], "mov", "quicktime", 1)
	default:
		return mime.TypeByExtension(ext)
	}
}

// MIME determines a file's type from its first bytes and the declared type. Types that can be detected reliably are detected.
// The declared type only decides between formats whose bytes look alike, so that an HTML page can never be served as an image.
func MIME(head []byte, declared string) string {
	detected := base(http.DetectContentType(head))
	declared = base(declared)
	switch detected {
	case "application/octet-stream", "text/plain", "text/xml", "application/zip", "application/x-gzip":
		// Many formats are detected as these.
	default:
		return detected
	}
	if declared == "" || certain(declared) || strings.Count(declared, "/") != 1 {
		return detected
	}
	// A type that browsers show as text requires content that looks like text.
	if text := strings.HasPrefix(detected, "text/"); !text && (strings.HasPrefix(declared, "text/") || declared == "image/svg+xml") {
		return detected
	}
	return declared
}

// base returns a MIME type without parameters, or "" if s isn't a MIME type.
func base(s string) string {
	t, _, err := mime.ParseMediaType(s)
	if err != nil {
		return ""
	}
	return t
}

// certain reports whether files of a type are always detected. If another type was detected, the declaration is wrong.
func certain(t string) bool {
	switch t {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "application/pdf", "text/html":
		return true
	}
	return false
}

// Inline reports whether browsers may show a file of this type directly. Types that can contain scripts must be downloaded.
func Inline(t string) bool {
	switch t {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "text/plain":
		return true
	}
	return strings.HasPrefix(t, "audio/") || strings.HasPrefix(t, "video/")
}

// maxName limits the length of a name, in bytes.
const maxName = 200

// Name returns a safe display name: without folders, control characters, and characters that could mislead a reader. It may be
// empty. Names come from browsers, agents and messengers.
func Name(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		// Format characters can reverse the text direction or hide a part of the name.
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Cf, r) && r != zeroWidthJoiner {
			return -1
		}
		return r
	}, name)
	// The extension is kept, because it decides how systems open the file.
	if len(name) > maxName {
		ext := path.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		name = strings.ToValidUTF8(name[:maxName-len(ext)], "") + ext
	}
	if name = strings.TrimSpace(name); name == "." || name == "/" || name == ".." {
		return ""
	}
	return name
}

// zeroWidthJoiner joins emoji, so it is the only format character that is kept.
const zeroWidthJoiner = '\u200d'

// pathName returns a name for use as the last element of a path. It replaces characters that some file systems refuse, and
// quotes and brackets, which a MEDIA: line with the path would misinterpret.
func pathName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("`\"'[]{}(),<>:|?*", r) {
			return '_'
		}
		return r
	}, Name(name))
	name = strings.Trim(name, " .")
	if name == "" {
		return "file"
	}
	return name
}
