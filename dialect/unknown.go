package dialect

// Unknown counts the frames that a decoder does not know, by their type. The zero value is ready; it is its own state.
type Unknown map[string]int

// maxUnknown bounds the number of names that are told apart, and maxUnknownName their bytes: an upstream chooses them.
const (
	maxUnknown     = 64
	maxUnknownName = 64
)

// Add counts one frame. Beyond the bound all names count as "other".
func (u *Unknown) Add(name string) {
	if *u == nil {
		*u = Unknown{}
	}
	if len(name) > maxUnknownName {
		name = "other"
	}
	if _, ok := (*u)[name]; !ok && len(*u) >= maxUnknown {
		name = "other"
	}
	(*u)[name]++
}

// Counter is a decoder that tells what it did not know.
type Counter interface {
	// Unknown returns the counts so far; the caller does not change them.
	Unknown() Unknown
}

// Unknown returns what the stream's decoder did not know; nil where it does not count.
func (s *Stream) Unknown() Unknown {
	if c, ok := s.dec.(Counter); ok {
		return c.Unknown()
	}
	return nil
}
