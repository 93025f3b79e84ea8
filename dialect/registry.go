package dialect

import (
	"fmt"
	"slices"
	"strings"
)

// Registry is an immutable set of dialects. The zero value is empty. It is safe for concurrent use.
type Registry struct{ dialects []Dialect }

// NewRegistry returns a registry of the dialects. It panics if two of them have the same name.
func NewRegistry(dialects ...Dialect) Registry {
	dialects = slices.SortedFunc(slices.Values(dialects), func(a, b Dialect) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(dialects); i++ {
		if dialects[i].Name == dialects[i-1].Name {
			panic("dialect: " + dialects[i].Name + " is registered twice")
		}
	}
	return Registry{dialects}
}

// Lookup returns the dialect called name. For an unknown name the error wraps [ErrUnknown] and lists the registered names.
func (r Registry) Lookup(name string) (Dialect, error) {
	names := make([]string, len(r.dialects))
	for i, d := range r.dialects {
		if d.Name == name {
			return d, nil
		}
		names[i] = d.Name
	}
	return Dialect{}, fmt.Errorf("%w %q; known are: %s", ErrUnknown, name, strings.Join(names, ", "))
}

// List returns all dialects, sorted by name.
func (r Registry) List() []Dialect { return slices.Clone(r.dialects) }
