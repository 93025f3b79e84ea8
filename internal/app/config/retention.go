package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Retention says for how long conversations are kept after their last change; 0 is for ever.
type Retention struct {
	Default Duration `yaml:"default"`
	// Agents are times for the conversations of some agents, in place of Default. There may be ones of agents that are
	// configured no more: their conversations are still there.
	Agents Ages `yaml:"agents"`
}

// DefaultAuditRetention keeps the audit log for a year and what an inquiry into it takes.
const DefaultAuditRetention = 400 * 24 * time.Hour

// Ages are times by the name of an agent. In the environment they are written name=time, separated by white space.
type Ages map[string]Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Ages) UnmarshalText(b []byte) error {
	var all Ages
	for s := range strings.FieldsSeq(string(b)) {
		name, age, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return fmt.Errorf("%q is no time of an agent; write it as helper=30d", s)
		}
		if err := all.set(name, age); err != nil {
			return err
		}
	}
	*a = all
	return nil
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (a *Ages) UnmarshalYAML(n ast.Node) error {
	list, err := entries(n)
	if err != nil {
		return err
	}
	var all Ages
	for _, e := range list {
		v, err := scalar(e.value)
		if err == nil {
			err = all.set(e.key, v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.key, err)
		}
	}
	*a = all
	return nil
}

func (a *Ages) set(name, age string) error {
	if _, twice := (*a)[name]; twice {
		return fmt.Errorf("%s stands there twice", name)
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
