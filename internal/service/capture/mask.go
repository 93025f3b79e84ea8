// Masking secrets in captured bytes, also if a secret is split over two pieces or escaped in JSON.

package capture

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
)

// mask replaces a secret.
const mask = "***"

// shortest is the minimum length of a configured secret, in bytes. A shorter value would also match ordinary text.
const shortest = 4

// form is a pattern of secrets that can be recognized without configuration. The first and last group of pattern are kept; the
// text between them is masked.
type form struct {
	// marks are substrings, one of which occurs in every match. The regular expression only runs if one is found, because a
	// substring search is much cheaper.
	marks   []string
	pattern *regexp.Regexp
}

// names matches the JSON keys whose values are secret regardless of their form.
const names = `[a-z0-9_-]*api[_-]?key|authorization|(?:client|auth|access|refresh|device|id|session|bot)[_-]?token|(?:client[_-]?)?secret|private[_-]?key|password`

// nameMarks are the marks of names.
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
	{[]string{"gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-"}, regexp.MustCompile(`(\b(?:gh[opsur]_|github_pat_|glpat-))[A-Za-z0-9_-]{20,}()`)},
	{[]string{"xox"}, regexp.MustCompile(`(\bxox[a-z]-)[A-Za-z0-9-]{10,}()`)},
	{[]string{"eyJ"}, regexp.MustCompile(`(\beyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}()`)},
	{[]string{"leat-turn."}, regexp.MustCompile(`(leat-turn\.[0-9A-Za-z-]+\.)[A-Z0-9]{8,}()`)},
}

// masker masks the secrets of one agent. Every turn has one, with the secrets of its agent.
type masker struct {
	values  [][]byte // longest first, so that a secret that contains another one is masked as a whole
	longest int      // length of the longest value, bytes
}

// newMasker returns a masker for the values and the recognizable forms. It also masks values escaped in JSON or in a URL.
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

// Mask returns text with its secrets masked, as a capture would store it.
func Mask(secrets []string, text string) string {
	return string(newMasker(secrets).mask([]byte(text)))
}

// mask returns b with its secrets masked. Without secrets, it returns b itself. Configured values come first, because a pattern
// could otherwise mask only a part of one.
func (m *masker) mask(b []byte) []byte {
	for _, v := range m.values {
		if bytes.Contains(b, v) {
			b = bytes.ReplaceAll(b, v, []byte(mask))
		}
	}
	for i := range forms {
		if f := &forms[i]; f.occurs(b) {
			b = f.pattern.ReplaceAll(b, []byte("${1}"+mask+"${2}"))
		}
	}
	return b
}

// matches reports whether mask may change b. It is quick if b contains no mark of a secret.
func (m *masker) matches(b []byte) bool {
	for _, v := range m.values {
		if bytes.Contains(b, v) {
			return true
		}
	}
	for i := range forms {
		if forms[i].occurs(b) && forms[i].pattern.Match(b) {
			return true
		}
	}
	return false
}

// occurs reports whether b contains a mark of the form.
func (f *form) occurs(b []byte) bool {
	return slices.ContainsFunc(f.marks, func(mark string) bool { return bytes.Contains(b, []byte(mark)) })
}

// maxPending limits the bytes of a line of a body that are held in memory until its end arrives.
const maxPending = 16 << 10

// maskable returns how many bytes of b can be masked and written now. Those are the complete lines, since no secret contains a
// line feed. If a line exceeds maxPending, its beginning is written too, up to a point that no secret can span.
func (m *masker) maskable(b []byte) int {
	if n := bytes.LastIndexByte(b, '\n') + 1; n > 0 || len(b) <= maxPending {
		return n
	}
	// Cut where no secret can continue: after a JSON value, or else at white space.
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
