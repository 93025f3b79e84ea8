package config

import (
	"encoding"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// Key is one setting.
type Key struct {
	Path string   // in the file, such as limits.message
	Env  []string // environment variables, the first that is set counts
	Live bool     // whether a change counts while the gateway runs, or only from its next start on

	value reflect.Value
}

// Keys returns all settings of a configuration, in the order of the file.
func (c *Config) Keys() []Key { return keys(reflect.ValueOf(c).Elem(), "", false) }

func keys(v reflect.Value, prefix string, live bool) []Key {
	var all []Key
	for i := range v.NumField() {
		f := v.Type().Field(i)
		path := prefix + f.Tag.Get("yaml")
		live := live || f.Tag.Get("live") != ""
		if f.Type.Kind() == reflect.Struct {
			all = append(all, keys(v.Field(i), path+".", live)...)
			continue
		}
		env := strings.Fields(f.Tag.Get("env"))
		if len(env) == 0 {
			env = []string{"LEAT_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))}
		}
		all = append(all, Key{path, env, live, v.Field(i)})
	}
	return all
}

// Changed returns the keys whose values differ from those of another configuration, in the order of the file.
func (c *Config) Changed(from *Config) []Key {
	var all []Key
	old := from.Keys()
	for i, k := range c.Keys() {
		a, b := k.value, old[i].value
		if kind := a.Kind(); (kind == reflect.Slice || kind == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
			continue // written as empty, or not at all
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			all = append(all, k)
		}
	}
	return all
}

// Set gives the key a value as the environment writes it: lists are separated by commas, agents by white space, unless it
// stands in quotation marks.
func (k Key) Set(s string) error {
	if err := k.set(s); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, k.Path, err)
	}
	return nil
}

func (k Key) set(s string) error {
	switch p := k.value.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(s))
	case *string:
		*p = s
	case *int:
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("%q is no whole number", s)
		}
		*p = n
	case *bool:
		v, err := strconv.ParseBool(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		*p = v
	case *[]string:
		*p = nil
		for v := range strings.SplitSeq(s, ",") {
			if v = strings.TrimSpace(v); v != "" {
				*p = append(*p, v)
			}
		}
	case *Agents:
		specs, err := agent.Words(s)
		if err != nil {
			return err
		}
		return p.Parse(specs)
	case *Prices:
		return p.parse(s)
	case *Webhooks:
		return p.parse(s)
	default:
		return fmt.Errorf("a %T can't be set", p)
	}
	return nil
}

// Parse replaces the agents by those that are written as specs.
func (a *Agents) Parse(specs []string) error {
	*a = nil
	for _, v := range specs {
		spec, err := agent.ParseSpec(v)
		if err != nil {
			return err
		}
		*a = append(*a, spec)
	}
	return nil
}

// The ports that the environment of an Eliza gives.
var elizaPorts = []string{"ELIZA_API_PORT", "ELIZA_PORT", "ELIZA_GATEWAY_PORT"}

func (c *Config) environment(lookup func(string) (string, bool)) error {
	listen := false
	for _, k := range c.Keys() {
		for _, name := range k.Env {
			// An empty variable counts as none: that is how it is taken back in most places that set one.
			v, ok := lookup(name)
			if !ok || v == "" {
				continue
			}
			if err := k.Set(v); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			listen = listen || k.Path == "listen"
			break
		}
	}
	if listen {
		return nil
	}
	var ports []string
	for _, name := range elizaPorts {
		v, ok := lookup(name)
		if !ok || v == "" {
			continue
		}
		if n, err := strconv.ParseUint(v, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%s: %w: %q is no port", name, ErrInvalid, v)
		}
		ports = append(ports, net.JoinHostPort("127.0.0.1", v))
	}
	if len(ports) > 0 {
		slices.Sort(ports)
		c.Listen = slices.Compact(ports)
	}
	return nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
