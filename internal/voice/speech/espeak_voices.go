package speech

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/voice"
)

// defaultLanguage is spoken if neither the utterance nor the configuration names a language.
const defaultLanguage = "en-us"

// voices maps the languages of an installed espeak-ng, in lower case, to the voices that speak them.
type voices map[string]string

var (
	// otherLanguage matches an entry in the last column of the list, such as "(zh 5)". A low number is a good match.
	otherLanguage = regexp.MustCompile(`\(([A-Za-z0-9-]+) +(\d+)\)`)
	// voiceName matches a voice, which may have a variant such as +f3. It excludes paths.
	voiceName = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N}_-]*(\+[\p{L}\p{N}_-]+)?$`)
)

// parseVoices reads the table that espeak-ng --voices prints. Its columns are the priority, the language, the age and gender, the name, the
// file, and other languages that the voice can speak.
func parseVoices(table string) voices {
	v := voices{}
	type match struct {
		language, voice string
		priority        int
	}
	var secondary []match
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[0] == "Pty" {
			continue
		}
		name := strings.ToLower(fields[1])
		v[name] = name
		for _, m := range otherLanguage.FindAllStringSubmatch(line, -1) {
			priority, err := strconv.Atoi(m[2])
			if err == nil {
				secondary = append(secondary, match{strings.ToLower(m[1]), name, priority})
			}
		}
	}
	slices.SortStableFunc(secondary, func(a, b match) int { return cmp.Compare(a.priority, b.priority) })
	for _, o := range secondary {
		if v[o.language] == "" {
			v[o.language] = o.voice
		}
	}
	return v
}

// aliases are languages for which espeak-ng's own table gives nothing or an unusual choice.
var aliases = map[string]string{
	"en": "en-us", "en-au": "en-gb", "en-ie": "en-gb", "en-in": "en-gb", "en-nz": "en-gb", "en-za": "en-gb",
	"es-ar": "es-419", "es-cl": "es-419", "es-co": "es-419", "es-pe": "es-419", "es-us": "es-419", "es-ve": "es-419",
	"zh": "cmn", "zh-hk": "yue", "zh-mo": "yue", "nn": "nb", "no": "nb", "iw": "he", "in": "id", "ji": "yi", "mo": "ro",
}

// forTag returns the voice for a BCP 47 tag: for all of it, for its language and region, or for its language.
func (v voices) forTag(tag string) (string, bool) {
	parts := strings.Split(strings.ToLower(strings.ReplaceAll(tag, "_", "-")), "-")
	candidates := []string{strings.Join(parts, "-")}
	for _, part := range slices.Backward(parts[1:]) {
		candidates = append(candidates, parts[0]+"-"+part)
	}
	for _, c := range append(candidates, parts[0]) {
		if name := v[aliases[c]]; name != "" {
			return name, true
		}
		if name := v[c]; name != "" {
			return name, true
		}
	}
	return "", false
}

// voiceFor returns the voice for an utterance. The utterance's voice comes first, then its language with the variant of the configured
// voice, and then the configuration.
func (e *espeak) voiceFor(u voice.Utterance) (string, error) {
	o := e.options
	_, variant, _ := strings.Cut(o.Voice, "+")
	name := u.Voice
	if name == "" && u.Language == "" {
		name = o.Voice
	}
	if name == "" {
		tag := cmp.Or(u.Language, o.Language, defaultLanguage)
		match, ok := e.voices.forTag(tag)
		if !ok {
			return "", &voice.Failure{Service: "speech", Engine: o.Engine, Reason: voice.Rejected, Detail: fmt.Sprintf("no voice speaks the language %q", tag)}
		}
		if name = match; variant != "" {
			name += "+" + variant
		}
	}
	if !voiceName.MatchString(name) {
		return "", &voice.Failure{Service: "speech", Engine: o.Engine, Reason: voice.Rejected, Detail: fmt.Sprintf("invalid voice %q", name)}
	}
	return name, nil
}
