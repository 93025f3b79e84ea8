package dialect

// Unknown counts the frames that a decoder doesn't recognize, by their type. The zero value is ready to use. Decoders store it in
// their state.
type Unknown map[string]int

// The limits of the names and of the bytes of a name. The upstream chooses the names, and they are stored with every commit and
// exported as metric labels.
const (
	maxUnknown     = 64
	maxUnknownName = 64
)

// Add counts one frame. Long names, and new names above the limit, count as "other".
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

// Counter is implemented by decoders that count unknown frames.
type Counter interface {
	// Unknown returns the counts so far. The caller must not change the map.
	Unknown() Unknown
}

// Unknown returns the counts of the stream's decoder, or nil if the decoder isn't a [Counter].
func (s *Stream) Unknown() Unknown {
	if c, ok := s.dec.(Counter); ok {
		return c.Unknown()
	}
	return nil
}
