// The text form of an agent in flags and in the configuration: a kind, a target and options.

package agent

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spec describes an agent to make. Its written form is [name=]kind[:target][?key=value…]; in the configuration file it is a mapping with the
// same keys.
type Spec struct {
	Name    string // the agent's name in conversations; by default the name of the kind
	Kind    string
	Target  string // depends on the kind, such as a URL, a file or a model
	Options map[string]string
	// Silence is how long a turn may make no progress. 0 is the gateway's default, and a negative value means no limit.
	Silence time.Duration
	// Description and Suggestions override those of a [Describer].
	Description string
	Suggestions []string
}

// maxName is the maximum length of a name, in bytes. Names are short because the first event of each turn contains one.
const maxName = 64

// The names of the options that every kind has. The suggestions are separated by line breaks.
const (
	silence     = "silence"
	description = "description"
	suggestions = "suggestions"
)

// ParseSpec parses the written form of a spec. The target ends at the first question mark, so a target that contains one can only be written
// in the configuration file. A plain URL is of kind http. Keys and values are encoded as in the query of a URL. Errors begin with the spec
// and never contain the values of options, which may be secret.
func ParseSpec(s string) (Spec, error) {
	head, query, _ := strings.Cut(s, "?")
	s = MaskURLs(head) // for error texts, which must not contain secret options
	spec := Spec{}
	if name, tail, ok := strings.Cut(head, "="); ok && !strings.Contains(name, ":") {
		if name == "" {
			return spec, fmt.Errorf("%q: the name before = is empty", s)
		}
		spec.Name, head = name, tail
	}
	spec.Kind, spec.Target, _ = strings.Cut(head, ":")
	if strings.HasPrefix(spec.Target, "//") && (spec.Kind == "http" || spec.Kind == "https") {
		spec.Kind, spec.Target = "http", head // a plain URL
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return spec, fmt.Errorf("%q: after the question mark: %w", s, err)
	}
	options := make(map[string]string, len(values))
	for key, v := range values {
		if len(v) > 1 {
			return spec, fmt.Errorf("%q: %s is set %d times", s, key, len(v))
		}
		options[key] = v[0]
	}
	if err := spec.SetOptions(options); err != nil {
		return spec, fmt.Errorf("%q: %w", s, err)
	}
	spec.Name = cmp.Or(spec.Name, spec.Kind)
	if err := spec.check(); err != nil {
		return spec, fmt.Errorf("%q: %w", s, err)
	}
	return spec, nil
}

// SetOptions sets the spec's options, and the fields for options that every kind has.
func (s *Spec) SetOptions(options map[string]string) error {
	s.Options, s.Silence, s.Description, s.Suggestions = maps.Clone(options), 0, "", nil
	if v, ok := s.Options[silence]; ok {
		delete(s.Options, silence)
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return fmt.Errorf("%s: invalid duration %q; use one such as 90s, or 0 for no limit", silence, v)
		}
		if s.Silence = d; d == 0 {
			s.Silence = -1
		}
	}
	return s.setIntroduction()
}

// setIntroduction sets the description and the suggestions from the options with these names.
func (s *Spec) setIntroduction() error {
	text, lines := s.Options[description], s.Options[suggestions]
	delete(s.Options, description)
	delete(s.Options, suggestions)
	var messages []string
	if lines != "" {
		messages = strings.Split(strings.TrimSuffix(lines, "\n"), "\n")
	}
	if err := checkIntroduction(text, messages); err != nil {
		return err
	}
	s.Description, s.Suggestions = text, messages
	return nil
}

// WithOption returns a copy of the spec with an option.
func (s Spec) WithOption(name, value string) Spec {
	options := map[string]string{}
	maps.Copy(options, s.Options)
	options[name] = value
	s.Options = options
	return s
}

// check checks the kind and the name. The target and the options are checked by the kind.
func (s *Spec) check() error {
	if s.Kind == "" {
		return fmt.Errorf("the kind is missing; the form is [name=]kind[:target][?key=value…]")
	}
	if err := checkName(s.Kind); err != nil {
		return fmt.Errorf("kind %w", err)
	}
	if err := checkName(s.Name); err != nil {
		return fmt.Errorf("name %w", err)
	}
	return nil
}

// checkName allows the characters that a name can have in a flag, a URL and a metric.
func checkName(s string) error {
	if s == "" || len(s) > maxName {
		return fmt.Errorf("%q: a name has 1 to %d characters", s, maxName)
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c) {
			return fmt.Errorf("%q: a name has letters, digits, dash, underscore and dot only", s)
		}
	}
	return nil
}

// String returns the written form that ParseSpec parses. It contains secret options in clear text; see [Kinds.Masked].
func (s Spec) String() string {
	var b strings.Builder
	if s.Name != s.Kind {
		b.WriteString(s.Name + "=")
	}
	b.WriteString(s.Kind)
	if s.Target != "" {
		b.WriteString(":" + s.Target)
	}
	sep := "?"
	add := func(key, value string) {
		b.WriteString(sep + url.QueryEscape(key) + "=" + url.QueryEscape(value))
		sep = "&"
	}
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		add(key, s.Options[key])
	}
	if s.Silence != 0 {
		add(silence, max(s.Silence, 0).String())
	}
	if s.Description != "" {
		add(description, s.Description)
	}
	if len(s.Suggestions) > 0 {
		add(suggestions, strings.Join(s.Suggestions, "\n"))
	}
	return b.String()
}

// Float returns an option as a number from 0 to 1e9, or def if it is not given.
func (s Spec) Float(key string, def float64) (float64, error) {
	v, ok := s.Options[key]
	if !ok {
		return def, nil
	}
	f, err := strconv.ParseFloat(v, 64)
	// The condition is negated so that it is also true for NaN.
	if err != nil || !(f >= 0 && f <= maxFloat) {
		return 0, fmt.Errorf("%s: invalid number %q; use 0 or more", key, v)
	}
	return f, nil
}

// Bool returns an option as a boolean, or def if it is not given. It takes the words of [strconv.ParseBool].
func (s Spec) Bool(key string, def bool) (bool, error) {
	v, ok := s.Options[key]
	if !ok {
		return def, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return def, fmt.Errorf("%s: invalid value %q; use true or false", key, v)
	}
	return b, nil
}

// maxFloat keeps durations that are multiplied by an option from overflowing.
const maxFloat = 1e9
