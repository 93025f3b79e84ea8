// Control syntax that protocol 3 leaves in the text: lines that name files, and directives.

package openclaw

import "strings"

// A gateway of protocol 3 streams the model's text with its control syntax in it: MEDIA: lines that name files,
// [[directives]] for its channels, and NO_REPLY for "send no answer". Screening removes them. Every frame repeats the
// segment's text from its start, so screening always sees the whole text and needs no state.
//
// Visible text only grows: the screened form of a text begins with the screened form of each of its prefixes.

// screened is the result of screening a text of protocol 3.
type screened struct {
	// visible is what viewers may see now. It is final: with more text, only something is appended to it.
	visible string
	// buffered is the text after visible that may turn out to be control syntax.
	buffered string
	// media has the files of whole MEDIA: lines, in order.
	media []string
	// at has the offset in the text at which each file belongs. It may be after visible.
	at []int
	// silent means that a whole line is NO_REPLY.
	silent bool
}

const (
	mediaToken  = "MEDIA:"
	silentToken = "NO_REPLY"
	// maxMedia is the length of the longest path or URL, in bytes, as in the gateway. A longer line is text.
	maxMedia = 4096
	// maxDirective is the length of the longest directive, in bytes, so that text after [[ is not buffered for long.
	maxDirective = 128
)

// screen screens a text that may continue. Text in fenced code is never control syntax, so nothing is buffered at its
// end.
func screen(t string) screened {
	s := screened{visible: t}
	tail := 0
	if strings.Contains(t, mediaToken) || strings.Contains(t, "[[") || strings.Contains(t, silentToken) {
		var fenced bool
		s.visible, tail, s.media, s.at, s.silent, fenced = strip(t)
		if fenced {
			return s
		}
	}
	limit := holdFrom(s.visible, tail)
	s.visible, s.buffered = s.visible[:limit], s.visible[limit:]
	return s
}

// screenWhole screens a complete text. White space at its end is removed, as the gateway itself does. The line feed
// that it adds makes the last line a whole one, as any other.
func screenWhole(t string) screened {
	visible, _, media, at, silent, _ := strip(t + "\n")
	return screened{visible: strings.TrimRight(visible, " \t\r\n"), media: media, at: at, silent: silent}
}

// release screens buffered text after which nothing follows. If the text was interrupted, control syntax that has begun is
// dropped, since half a path is useless.
func release(buffered string, interrupted bool) screened {
	if interrupted {
		at := strings.LastIndexByte(buffered, '\n') + 1
		line := strings.TrimLeft(buffered[at:], " \t")
		silent := strings.HasPrefix(line, "NO_") && strings.TrimSpace(line) != silentToken
		if silent || strings.HasPrefix(line, mediaToken) || strings.HasPrefix(line, "[[") {
			buffered = buffered[:at]
		}
	}
	return screenWhole(buffered)
}

// strip removes whole MEDIA: and NO_REPLY lines and whole directives from t, except in fenced code. From offset tail on, the
// result equals t. fenced reports whether t ends inside such code. A line that consisted of directives only
// disappears with its line end.
func strip(t string) (visible string, tail int, media []string, at []int, silent, fenced bool) {
	var b strings.Builder
	b.Grow(len(t))
	fence := ""
	for len(t) > 0 {
		line, suffix, terminated := strings.Cut(t, "\n")
		t = suffix
		if fence, fenced = nextFence(fence, line); !fenced {
			bare, from := stripDirectives(line)
			trimmed := strings.TrimSpace(bare)
			if terminated {
				if trimmed == silentToken {
					silent = true
					continue
				}
				if url := mediaURL(trimmed); url != "" {
					media, at = append(media, url), append(at, b.Len())
					continue
				}
				if trimmed == "" && bare != line {
					continue
				}
			}
			line = bare
			tail = b.Len() + from
		}
		b.WriteString(line)
		if terminated {
			b.WriteByte('\n')
		}
		fenced = fence != ""
	}
	return b.String(), tail, media, at, silent, fenced
}

// nextFence tracks fenced code as Markdown defines it. fence is the run of marks that opened the code, or empty outside. code
// reports whether the line is inside or one of its fences. A fence is closed by at least as many of the same marks,
// with nothing behind them.
func nextFence(fence, line string) (next string, code bool) {
	t := strings.TrimSpace(line)
	n := 0
	for n < len(t) && (t[n] == '`' || t[n] == '~') && t[n] == t[0] {
		n++
	}
	switch {
	case fence == "" && n >= 3:
		return t[:n], true
	case fence == "":
		return "", false
	case n == len(t) && n >= len(fence) && t[0] == fence[0]:
		return "", true
	}
	return fence, true
}

// mediaURL returns the path or URL that a trimmed MEDIA: line names, or "" for any other line. Quotes and brackets
// around the address are removed. Without a dot or a slash it is a word, and the line is text.
func mediaURL(line string) string {
	suffix, ok := strings.CutPrefix(line, mediaToken)
	if !ok {
		return ""
	}
	url := strings.TrimSpace(suffix)
	url = strings.TrimRight(strings.TrimLeft(url, "`\"'[{("), "`\"'\\})],")
	if len(suffix) > maxMedia || !strings.ContainsAny(url, "./\\") {
		return ""
	}
	for _, root := range []string{"/", "./", "../", "~/", "file://"} {
		if strings.HasPrefix(url, root) {
			return url // may have spaces in it
		}
	}
	if host, ok := strings.CutPrefix(url, "http"); ok && len(strings.TrimLeft(host, "s:/")) == 0 {
		return "" // a scheme alone is half an address
	}
	if strings.ContainsAny(url, " \t") {
		return ""
	}
	return url
}

// stripDirectives removes whole directives, and the white space after them, from a line. From offset tail on, the result equals
// the line.
func stripDirectives(line string) (bare string, tail int) {
	for from := 0; ; {
		at := strings.Index(line[from:], "[[")
		if at < 0 {
			return line, tail
		}
		at += from
		from = at + 1
		inner, suffix, ok := strings.Cut(line[at+2:], "]]")
		if ok && directive(inner, true) {
			line = line[:at] + strings.TrimLeft(suffix, " \t")
			from, tail = at, at
		}
	}
}

// directive reports whether inner, the text after [[, is the content of a directive or, if not terminated, could
// become one. The names are those of the gateway. Others stay visible, because people write double brackets too.
func directive(inner string, terminated bool) bool {
	if len(inner) > maxDirective || strings.ContainsAny(inner, "[\n") {
		return false
	}
	if !terminated {
		inner = strings.TrimSuffix(inner, "]")
	}
	inner = strings.ToLower(strings.TrimSpace(inner))
	for _, name := range []string{"reply_to_current", "audio_as_voice"} {
		if inner == name || !terminated && strings.HasPrefix(name, inner) {
			return true
		}
	}
	id, ok := strings.CutPrefix(inner, "reply_to")
	id, to := strings.CutPrefix(strings.TrimSpace(id), ":")
	return ok && to && !strings.Contains(id, "]") && (!terminated || strings.TrimSpace(id) != "")
}

// holdFrom returns the offset in t from which text must be buffered, because it may turn out to be control syntax: a directive
// or a line that has begun, and line ends at the end of t. No directive begins before tail.
func holdFrom(t string, tail int) int {
	start := strings.LastIndexByte(t, '\n') + 1
	limit := len(t)
	open := t[max(start, tail):]
	at := -1
	if strings.Contains(open, "[[") { // seldom, and a tenth of the time of looking from the end
		at = strings.LastIndex(open, "[[")
	}
	if at >= 0 && directive(open[at+2:], false) {
		limit = len(t) - len(open) + at
	} else if strings.HasSuffix(open, "[") {
		limit--
	}
	prefix := strings.TrimSpace(t[start:limit])
	media := strings.HasPrefix(prefix, mediaToken) && len(prefix) <= len(mediaToken)+maxMedia
	if !media && !strings.HasPrefix(mediaToken, prefix) && !strings.HasPrefix(silentToken, prefix) {
		return limit
	}
	return len(strings.TrimRight(trimBlankLines(t[:start]), "\n"))
}

// trimBlankLines removes the blank lines at the end of a text that ends with a whole line.
func trimBlankLines(t string) string {
	for t != "" {
		at := strings.LastIndexByte(t[:len(t)-1], '\n') + 1
		if strings.TrimSpace(t[at:]) != "" {
			return t
		}
		t = t[:at]
	}
	return t
}
