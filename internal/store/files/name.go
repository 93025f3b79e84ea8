package files

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds names, in bytes.
const maxName = 200

// Name is a name without the folders that it comes with, and without what would mislead who reads it. It may be empty.
func Name(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		// Format characters turn the direction of a name around, or hide a part of it.
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Cf, r) && r != zeroWidthJoiner {
			return -1
		}
		return r
	}, name)
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

// zeroWidthJoiner holds emoji together.
const zeroWidthJoiner = '\u200d'

// pathName is a name as the last element of a path: one that a MEDIA: line can hold, whose quotes and brackets at the ends
// would be taken for the line's own, and that every file system takes.
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
