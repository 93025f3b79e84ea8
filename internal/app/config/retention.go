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
	Agents ages `yaml:"agents"`
}

// defaultAuditRetention is a year, plus the time for an inquiry into it.
const defaultAuditRetention = 400 * 24 * time.Hour

// ages are durations by the name of an agent. In the environment they are written as name=duration, separated by white space.
type ages map[string]Duration

// UnmarshalText implements [encoding.TextUnmarshaler]. It replaces the durations as a whole, as a list is replaced.
func (a *ages) UnmarshalText(b []byte) error {
	var list ages
	for s := range strings.FieldsSeq(string(b)) {
		name, age, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return fmt.Errorf("invalid entry %q; write it as helper=30d", s)
		}
		if err := list.add(name, age); err != nil {
			return err
		}
	}
	*a = list
	return nil
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler]. After an error, a is unchanged.
func (a *ages) UnmarshalYAML(n ast.Node) error {
	members, err := entries(n)
	if err != nil {
		return err
	}
	var list ages
	for _, e := range members {
		v, err := scalar(e.value)
		if err == nil {
			err = list.add(e.key, v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.key, err)
		}
	}
	*a = list
	return nil
}

// add adds an agent with its duration in text form. A name that appears twice is an error, since one of the durations
// would be ignored, and conversations might be deleted too early.
func (a *ages) add(name, age string) error {
	if _, twice := (*a)[name]; twice {
		return fmt.Errorf("duplicate agent %s", name)
	}
	var d Duration
	if err := d.UnmarshalText([]byte(age)); err != nil {
		return err
	}
	if *a == nil {
		*a = ages{}
	}
	(*a)[name] = d
	return nil
}
