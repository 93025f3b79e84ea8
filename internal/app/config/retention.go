package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Retention configures how long conversations are stored after their last change. 0 means forever.
type Retention struct {
	Default Duration `yaml:"default"`
	// Agents overrides Default for the conversations of some agents. It may name agents that are not configured any more, because their
	// conversations still exist.
	Agents Ages `yaml:"agents"`
}

// defaultAuditRetention is a year, plus the time for an inquiry into it.
const defaultAuditRetention = 400 * 24 * time.Hour

// Ages are durations by the name of an agent. In the environment they are written as name=duration, separated by white space.
type Ages map[string]Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Ages) UnmarshalText(b []byte) error {
	var ages Ages
	for s := range strings.FieldsSeq(string(b)) {
		name, age, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return fmt.Errorf("invalid entry %q; write it as helper=30d", s)
		}
		if err := ages.add(name, age); err != nil {
			return err
		}
	}
	*a = ages
	return nil
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (a *Ages) UnmarshalYAML(n ast.Node) error {
	list, err := entries(n)
	if err != nil {
		return err
	}
	var ages Ages
	for _, e := range list {
		v, err := scalar(e.value)
		if err == nil {
			err = ages.add(e.key, v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.key, err)
		}
	}
	*a = ages
	return nil
}

// add adds an agent with its duration in text form.
func (a *Ages) add(name, age string) error {
	if _, twice := (*a)[name]; twice {
		return fmt.Errorf("duplicate agent %s", name)
	}
	var d Duration
	if err := d.UnmarshalText([]byte(age)); err != nil {
		return err
	}
	if *a == nil {
		*a = Ages{}
	}
	(*a)[name] = d
	return nil
}
