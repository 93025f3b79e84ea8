package files

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
