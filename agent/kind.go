package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrUnknownKind is returned if no kind of agent has the given name.
var ErrUnknownKind = errors.New("unknown kind")

// Kind is a way to make agents from a [Spec].
type Kind struct {
	Name    string // as users write it
	Summary string // one line
	Target  string // placeholder of the target, such as FILE; empty if the kind has no target
	Options []Option
	// Renamed maps old names of options to the current ones. Old names are still read; [Kinds.Warnings] names them.
	Renamed map[string]string
	// Missing returns an error if the agent of a spec lacks a setting that its upstream requires, such as a key. It doesn't call the
	// upstream. It may be nil.
	Missing func(Spec) error
	// New makes an agent. [Kinds.Make] has rejected unknown options and a missing target before it calls New.
	New func(Spec) (Agent, error)
	// Discover lists the agents, sessions or models of an upstream. It needs only the address and the credentials of the spec. For kinds
	// whose target isn't an address, such as models, Target is the address here, or empty for the default one. If Discover is nil,
	// the kind doesn't support discovery. Schemes are the URL schemes of the kind's addresses.
	Discover func(ctx context.Context, s Spec) ([]Offer, error)
	Schemes  []string
}

// Option is a setting of a kind.
type Option struct {
	Name, Help, Default string
	Secret              bool // the value is masked wherever a spec is shown
}

// Kinds are the kinds of agents that a program supports.
type Kinds []Kind

// Make makes the agent of a spec. Errors name the agent, and wrap ErrUnknownKind if its kind is unknown.
func (k Kinds) Make(s Spec) (Agent, error) {
	kind, err := k.Check(s)
	if err != nil {
		return nil, err
	}
	a, err := kind.New(kind.withCurrentNames(s))
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", s.Name, err)
	}
	return a, nil
}

// Check validates a spec as Make does, but doesn't make an agent. It returns the spec's kind.
func (k Kinds) Check(s Spec) (Kind, error) {
	fail := func(format string, args ...any) (Kind, error) {
		return Kind{}, fmt.Errorf("agent %s: %w", s.Name, fmt.Errorf(format, args...))
	}
	if err := s.check(); err != nil {
		return fail("%w", err)
	}
	kind, ok := k.find(s.Kind)
	if !ok {
		return fail("%w %q; use one of %s", ErrUnknownKind, s.Kind, strings.Join(k.names(), ", "))
	}
	switch {
	case kind.Target == "" && s.Target != "":
		return fail("kind %s has no target; remove %q after the colon", kind.Name, s.Target)
	case kind.Target != "" && s.Target == "":
		return fail("kind %s needs a target: %s:%s", kind.Name, kind.Name, kind.Target)
	}
	if err := kind.checkOptions(s.Options); err != nil {
		return fail("%w", err)
	}
	return kind, nil
}

// Missing returns an error if the agent of a spec lacks a setting that its upstream requires, such as a key. The error says what to set.
func (k Kinds) Missing(s Spec) error {
	kind, ok := k.find(s.Kind)
	if !ok || kind.Missing == nil {
		return nil
	}
	return kind.Missing(kind.withCurrentNames(s))
}

// Warnings returns a sentence for what the agent of the spec misses, and for each option that has an old name.
func (k Kinds) Warnings(s Spec) []string {
	kind, _ := k.find(s.Kind)
	var warnings []string
	if err := k.Missing(s); err != nil {
		warnings = append(warnings, fmt.Sprintf("agent %s can't answer: %s", s.Name, OneLine(err)))
	}
	for _, old := range slices.Sorted(maps.Keys(s.Options)) {
		if name, ok := kind.Renamed[old]; ok {
			warnings = append(warnings, fmt.Sprintf("agent %s: the option %s is now named %s; use the new name", s.Name, old, name))
		}
	}
	return warnings
}

// withCurrentNames returns the spec with the current names of its options. If a spec has both names of an option, which
// checkOptions rejects, the current one wins.
func (k *Kind) withCurrentNames(s Spec) Spec {
	options := maps.Clone(s.Options)
	for old, name := range k.Renamed {
		value, ok := options[old]
		if !ok {
			continue
		}
		delete(options, old)
		if _, exists := options[name]; !exists {
			options[name] = value
		}
	}
	s.Options = options
	return s
}

// checkOptions returns an error if the kind doesn't have one of the options.
func (k *Kind) checkOptions(options map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if name, ok := k.Renamed[key]; ok {
			if _, exists := options[name]; exists {
				return fmt.Errorf("%s is the old name of %s, and both are set; use %s", key, name, name)
			}
			continue
		}
		if !slices.ContainsFunc(k.Options, func(o Option) bool { return o.Name == key }) {
			return fmt.Errorf("kind %s has no option %q; it has %s", k.Name, key, strings.Join(k.options(), ", "))
		}
	}
	return nil
}

// Masked returns a copy of the spec for display: secret options are masked, and so are passwords and query values in URLs. If the kind is
// unknown, all options are masked.
func (k Kinds) Masked(s Spec) Spec {
	kind, ok := k.find(s.Kind)
	s = kind.withCurrentNames(s)
	s.Target = MaskURLs(s.Target)
	for key, value := range s.Options {
		s.Options[key] = MaskURLs(value)
		i := slices.IndexFunc(kind.Options, func(o Option) bool { return o.Name == key })
		if !ok || i < 0 || kind.Options[i].Secret {
			s.Options[key] = masked
		}
	}
	return s
}

func (k Kinds) find(name string) (Kind, bool) {
	i := slices.IndexFunc(k, func(kind Kind) bool { return kind.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return k[i], true
}

func (k Kinds) names() []string {
	names := make([]string, len(k))
	for i, kind := range k {
		names[i] = kind.Name
	}
	return names
}

func (k *Kind) options() []string {
	names := make([]string, len(k.Options))
	for i, o := range k.Options {
		names[i] = o.Name
	}
	return append(names, silence, description, suggestions)
}
