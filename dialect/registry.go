package dialect

import (
	"fmt"
	"slices"
	"strings"
)

// Registry is a set of dialects by name. It is a value; the zero value is empty.
type Registry struct{ dialects []Dialect }

// NewRegistry makes a registry. Two dialects of one name are a mistake of the program, and panic.
func NewRegistry(dialects ...Dialect) Registry {
	sorted := slices.Clone(dialects)
	slices.SortFunc(sorted, func(a, b Dialect) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Name == sorted[i-1].Name {
			panic("dialect: " + sorted[i].Name + " is registered twice")
		}
	}
	return Registry{sorted}
}

// Lookup returns the dialect of that name, or an error that wraps [ErrUnknown] and names those that are known.
func (r Registry) Lookup(name string) (Dialect, error) {
	for _, d := range r.dialects {
		if d.Name == name {
			return d, nil
		}
	}
	names := make([]string, len(r.dialects))
	for i, d := range r.dialects {
		names[i] = d.Name
	}
	return Dialect{}, fmt.Errorf("%w %q; known are: %s", ErrUnknown, name, strings.Join(names, ", "))
}

// List returns all dialects, sorted by name.
func (r Registry) List() []Dialect { return slices.Clone(r.dialects) }
