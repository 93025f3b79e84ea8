package capture

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
)

// mask is what stands in the place of a secret.
const mask = "***"

// shortest is how many bytes a configured value has at least to be a secret: a shorter one would be found everywhere.
const shortest = 4

// form is how secrets look. The text around one, its first and last group, stays.
type form struct {
	// marks are what a text holds, one at least, in which the pattern can be found. They are much cheaper to look for.
	marks   []string
	pattern *regexp.Regexp
}

// names are the keys of JSON whose values are secret, whatever these look like.
const names = `[a-z0-9_-]*api[_-]?key|authorization|(?:client|auth|access|refresh|device|id|session|bot)[_-]?token|(?:client[_-]?)?secret|private[_-]?key|password`

var nameMarks = []string{"key", "Key", "KEY", "ecret", "SECRET", "assword", "PASSWORD", "uthorization", "oken"}

var forms = []form{
	{[]string{"earer", "EARER"}, regexp.MustCompile(`(?i)(\bbearer(?:\s|%20)+)[A-Za-z0-9._~+/=-]{6,}()`)},
	{[]string{"asic "}, regexp.MustCompile(`(?i)(\bauthorization"?\s*[:=]\s*"?basic\s+)[A-Za-z0-9+/=]{6,}()`)},
	{nameMarks, regexp.MustCompile(`(?i)("(?:` + names + `)"\s*:\s*")(?:[^"\\]|\\.)+(")`)},
	{nameMarks, regexp.MustCompile(`(?i)(\\"(?:` + names + `)\\"\s*:\s*\\")(?:[^"\\]|\\[^"])+(\\")`)}, // JSON in JSON
	{[]string{"oken"}, regexp.MustCompile(`(?i)(\\?"token\\?"\s*:\s*\\?")[A-Za-z0-9._~+/=-]{20,}(\\?")`)},
	{[]string{"key=", "oken=", "ecret="}, regexp.MustCompile(`(?i)([?&](?:[a-z_-]*key|[a-z_-]*token|[a-z_-]*secret)=)[^&\s"'<>\\]{6,}()`)},
	{[]string{"sk-", "pk-", "rk-", "sk_", "rk_"}, regexp.MustCompile(`(\b(?:sk|pk|rk)[-_])[A-Za-z0-9_-]{16,}()`)},
	{[]string{"gsk_", "xai-", "hf_", "AIza", "AKIA", "ASIA"}, regexp.MustCompile(`(\b(?:gsk_|xai-|hf_|AIza|AKIA|ASIA))[A-Za-z0-9_-]{16,}()`)},
	{[]string{"gh", "glpat-"}, regexp.MustCompile(`(\b(?:gh[opsur]_|github_pat_|glpat-))[A-Za-z0-9_-]{20,}()`)},
	{[]string{"xox"}, regexp.MustCompile(`(\bxox[a-z]-)[A-Za-z0-9-]{10,}()`)},
	{[]string{"eyJ"}, regexp.MustCompile(`(\beyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}()`)},
	{[]string{"leat-turn."}, regexp.MustCompile(`(leat-turn\.[0-9A-Za-z-]+\.)[A-Z0-9]{8,}()`)},
}

// masker hides the secrets of one agent.
type masker struct {
	values  [][]byte // the longest first
	longest int
}

// newMasker returns a masker that hides the values too, also where they stand in JSON or in a URL.
func newMasker(values []string) *masker {
	m := &masker{}
	add := func(v string) {
		if len(v) >= shortest && !slices.ContainsFunc(m.values, func(have []byte) bool { return string(have) == v }) {
			m.values = append(m.values, []byte(v))
			m.longest = max(m.longest, len(v))
		}
	}
	for _, v := range values {
		add(v)
		if quoted, err := json.Marshal(v); err == nil {
			add(string(quoted[1 : len(quoted)-1]))
		}
		add(url.QueryEscape(v))
	}
	slices.SortFunc(m.values, func(a, b []byte) int { return len(b) - len(a) })
	return m
}

// Mask returns a text without secrets, as it would be kept.
func Mask(secrets []string, text string) string {
	return string(newMasker(secrets).mask([]byte(text)))
}

// mask returns the text without secrets: the same slice where there are none.
func (m *masker) mask(b []byte) []byte {
	for _, v := range m.values {
		if bytes.Contains(b, v) {
			b = bytes.ReplaceAll(b, v, []byte(mask))
		}
	}
	for i := range forms {
		f := &forms[i]
		if slices.ContainsFunc(f.marks, func(mark string) bool { return bytes.Contains(b, []byte(mark)) }) {
			b = f.pattern.ReplaceAll(b, []byte("${1}"+mask+"${2}"))
		}
	}
	return b
}

// maxHeld is how much of a body is held back for a line to end, in bytes.
const maxPending = 16 << 10

// whole is how many bytes of a body can be masked now: its whole lines, since a secret has no line end in it. Of a line that
// does not end only so much is held back that no secret can begin in what is let go.
func (m *masker) maskable(b []byte) int {
	if n := bytes.LastIndexByte(b, '\n') + 1; n > 0 || len(b) <= maxPending {
		return n
	}
	// What is let go ends where no secret can go on: behind a value of JSON, else at white space.
	n := len(b) - max(m.longest, maxPending/2)
	if n <= 0 {
		return 0
	}
	for _, end := range []string{",}]", " \t"} {
		if at := bytes.LastIndexAny(b[:n], end); at >= 0 {
			return at + 1
		}
	}
	return n
}
