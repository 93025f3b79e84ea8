package files

import (
	"mime"
	"net/http"
	"path"
	"strings"
)

// Sniffed is how many bytes say what a file is.
const Sniffed = 512

// ByName is what the end of a file's name says that it is: for [MIME], which believes it where bytes can't tell.
func ByName(name string) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".md": // not every system knows it
		return "text/markdown"
	case ".webm", ".mp4", ".mov":
		return "video/" + strings.Replace(ext[1:], "mov", "quicktime", 1)
	default:
		return mime.TypeByExtension(ext)
	}
}

// MIME says what a file is, from its first bytes and from what its origin says. What the bytes tell for certain is believed;
// what is said is believed only where bytes can't tell, so that a page is never served as a picture.
func MIME(head []byte, declared string) string {
	detected := base(http.DetectContentType(head))
	declared = base(declared)
	switch detected {
	case "application/octet-stream", "text/plain", "text/xml", "application/zip", "application/x-gzip":
		// The bytes of many formats look like these.
	default:
		return detected
	}
	if declared == "" || certain(declared) || strings.Count(declared, "/") != 1 {
		return detected
	}
	// What is shown as text has to look like text.
	if text := strings.HasPrefix(detected, "text/"); !text && (strings.HasPrefix(declared, "text/") || declared == "image/svg+xml") {
		return detected
	}
	return declared
}

// base is a MIME type without its parameters; empty where it is none.
func base(s string) string {
	t, _, err := mime.ParseMediaType(s)
	if err != nil {
		return ""
	}
	return t
}

// certain are the types that bytes tell: a file that is said to be one, and does not look it, is none.
func certain(t string) bool {
	switch t {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "application/pdf", "text/html":
		return true
	}
	return false
}

// Inline reports whether a browser may show a file of this type by itself: nothing that can hold a script.
func Inline(t string) bool {
	switch t {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "text/plain":
		return true
	}
	return strings.HasPrefix(t, "audio/") || strings.HasPrefix(t, "video/")
}
