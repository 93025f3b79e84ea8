package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// Key is one setting. It refers to the [Config] that it came from, so Set changes that. Keys are made from the struct
// tags of Config by reflection, so a new field needs no further code to be read from the environment, compared by a
// reload and printed.
type Key struct {
	Path       string   // in the file, such as limits.message
	Env        []string // environment variables; the first one that is set applies
	Reloadable bool     // whether a reload applies a change; otherwise it waits for the next start

	value reflect.Value
}

// Keys returns all settings of a configuration, in the order of the file.
func (c *Config) Keys() []Key { return keys(reflect.ValueOf(c).Elem(), "", false) }

// keys returns the settings of a struct, whose path begins with prefix. A struct with the tag live makes all its keys
// live.
func keys(v reflect.Value, prefix string, isLive bool) []Key {
	var list []Key
	for _, m := range members(v) {
		path := prefix + m.name
		isLive := isLive || m.tag.Get("live") != ""
		if m.value.Kind() == reflect.Struct {
			list = append(list, keys(m.value, path+".", isLive)...)
			continue
		}
		env := strings.Fields(m.tag.Get("env"))
		if len(env) == 0 {
			env = []string{"LEAT_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))}
		}
		list = append(list, Key{path, env, isLive, m.value})
	}
	return list
}

// member is a key of a section with its value.
type member struct {
	name  string
	tag   reflect.StructTag
	value reflect.Value
}

// members returns the keys of a struct. Those of an inlined map are its keys too.
func members(v reflect.Value) []member {
	var list []member
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		switches, ok := v.Field(i).Interface().(map[string]*bool)
		if !ok {
			list = append(list, member{f.Tag.Get("yaml"), f.Tag, v.Field(i)})
		}
		for _, name := range slices.Sorted(maps.Keys(switches)) {
			list = append(list, member{name, f.Tag, reflect.ValueOf(switches[name]).Elem()})
		}
	}
	return list
}

// Changed returns the keys whose values differ from those of another configuration, in the order of the file. A
// reload applies the live ones of them and reports the others.
func (c *Config) Changed(from *Config) []Key {
	var list []Key
	old := from.Keys()
	for i, k := range c.Keys() {
		a, b := k.value, old[i].value
		// A file may contain an empty list for a key that another file leaves out.
		if kind := a.Kind(); (kind == reflect.Slice || kind == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
			continue // an empty list equals a missing one
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			list = append(list, k)
		}
	}
	return list
}

// Set sets the key to a value in the form of environment variables: the items of a list are separated by commas, agents by white space
// outside quotation marks. Errors are [ErrInvalid].
func (k Key) Set(s string) error {
	if err := k.parse(s); err != nil {
		return &keyError{ErrInvalid.Error(), k.Path, err}
	}
	return nil
}

// parse sets the value from text, by its type. Durations and sizes implement [encoding.TextUnmarshaler]. Prices and
// webhooks have no short form, so a line of YAML is parsed.
func (k Key) parse(s string) error {
	switch p := k.value.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(s))
	case *string:
		*p = s
	case *int:
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		*p = n
	case *bool:
		v, err := strconv.ParseBool(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("%q; use true or false", s)
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
	case *Channels:
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

// Parse replaces the agents with those of the specs, which [agent.ParseSpec] describes.
func (a *Agents) Parse(specs []string) (err error) {
	*a, err = parseSpecs("agent", specs)
	return err
}

// parseSpecs parses the specs of agents or channels. The noun begins the errors.
func parseSpecs(noun string, specs []string) ([]agent.Spec, error) {
	list := make([]agent.Spec, 0, len(specs))
	for _, v := range specs {
		s, err := agent.ParseSpec(v)
		if err != nil {
			return nil, fmt.Errorf("%s %w", noun, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// elizaPorts are the environment variables of Eliza that set ports. The gateway listens on each of them, so that
// Eliza's clients find it without a change.
var elizaPorts = []string{"ELIZA_API_PORT", "ELIZA_PORT", "ELIZA_GATEWAY_PORT"}

// environment applies environment variables. Eliza's port variables apply only if no variable sets listen.
//
// Of several variables for one key the first that is set counts: Leat's own names are before Eliza's, so that a
// gateway can run next to an Eliza server in the same environment. Each of Eliza's ports becomes an address on
// loopback, also if the file sets listen.
func (c *Config) environment(lookup func(string) (string, bool)) error {
	listen := false
	var errs []error
	for _, k := range c.Keys() {
		for _, name := range k.Env {
			// An empty variable is ignored, because service managers can't unset one in any other way.
			v, ok := lookup(name)
			if !ok || v == "" {
				continue
			}
			if err := k.parse(v); err != nil {
				errs = append(errs, &keyError{name, k.Path, err})
			}
			c.SetSource(k.Path, name)
			listen = listen || k.Path == "listen"
			break
		}
	}
	if listen || len(errs) > 0 {
		return errors.Join(errs...)
	}
	var ports []string
	for _, name := range elizaPorts {
		v, ok := lookup(name)
		if !ok || v == "" {
			continue
		}
		if n, err := strconv.ParseUint(v, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%s: %w: %q is not a port", name, ErrInvalid, v)
		}
		ports = append(ports, net.JoinHostPort("127.0.0.1", v))
	}
	if len(ports) > 0 {
		slices.Sort(ports)
		c.Listen = slices.Compact(ports)
	}
	return nil
}
