package openclaw

import "strings"

// A gateway of protocol 3 streams the model's text with its control syntax in it: MEDIA: lines that name files,
// [[directives]] for its channels, and NO_REPLY for "say nothing". Screening takes them out. Every frame repeats the
// segment's text from its start, so that a screening looks at the whole and remembers nothing.
//
// What is shown only ever grows: the screened form of a text begins with that of each of its beginnings.

// screened is what a protocol 3 text comes to.
type screened struct {
	visible  string   // what may be seen now
	buffered string   // what follows it, and may yet turn out to be control syntax
	media    []string // named by whole MEDIA: lines, in order
	at       []int    // where in the text each of them stands, which may be behind what is shown
	silent   bool     // a whole line said NO_REPLY
}

const (
	mediaToken  = "MEDIA:"
	silentToken = "NO_REPLY"
	// maxMedia bounds a path or URL in bytes, as the gateway does; a longer line is text.
	maxMedia = 4096
	// maxDirective bounds in bytes what stands between [[ and ]], so that text is not held back for long.
	maxDirective = 128
)

// screen divides a text that may go on.
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

// screenWhole gives a text to which nothing will be added. Space at its end is left out, as the gateway itself does.
func screenWhole(t string) screened {
	visible, _, media, at, silent, _ := strip(t + "\n")
	return screened{visible: strings.TrimRight(visible, " \t\r\n"), media: media, at: at, silent: silent}
}

// release says what held-back text comes to when nothing follows it. If it was cut off, what has begun as control
// syntax is left out: half a path leads nowhere.
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

// strip takes whole MEDIA: and NO_REPLY lines and whole directives out of t, but nothing that stands in fenced code.
// What is kept stands in t as it is from tail on. fenced reports whether t ends inside such code.
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

// nextFence follows fenced code as Markdown defines it: fence is the run of marks that opened it, empty outside.
// code reports whether the line is inside or one of its two ends.
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

// mediaURL returns the path or URL that a trimmed line names; empty if it is no MEDIA: line.
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

// stripDirectives takes whole directives, and the space behind them, out of a line. From tail on it is as it was.
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

// directive reports whether what stands behind [[ is a directive's content or, if not whole, could become one.
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

// holdFrom returns where in t the text begins that may turn out to be control syntax, and so must wait: a directive
// or a line that has begun, and line ends behind which nothing stands yet. Before tail no directive begins.
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

// trimBlankLines cuts the blank lines off the end of a text that ends with a whole line.
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
