package dialect

import "github.com/leat-dev/leat/event"

// Snapshot turns snapshots of one growing text into operations without holding the text: only its length and hash.
// The zero value is an empty text. It is its own state: it can be marshalled to JSON and back.
type Snapshot struct{ d digest }

// Next takes a snapshot. It returns [event.PartAppend] and the new suffix where the snapshot extends the text,
// [event.PartReplace] and the whole snapshot where it does not, and an empty type where nothing has changed.
func (s *Snapshot) Next(text string) (event.Type, string) {
	if int64(len(text)) >= s.d.n {
		length := int(s.d.n)
		d := digestOf(text[:length])
		if length == 0 || d == s.d {
			d.add(text[length:])
			s.d = d
			if length == len(text) {
				return "", ""
			}
			return event.PartAppend, text[length:]
		}
	}
	s.d = digestOf(text)
	return event.PartReplace, text
}

// Is reports whether the text is exactly this one.
func (s *Snapshot) Is(text string) bool {
	return s.d.n == int64(len(text)) && (s.d.n == 0 || s.d == digestOf(text))
}

// Append takes a delta, in a dialect that sends both.
func (s *Snapshot) Append(delta string) { s.d.add(delta) }

// Len returns the length of the text in bytes.
func (s *Snapshot) Len() int64 { return s.d.n }

// MarshalJSON writes the state.
func (s Snapshot) MarshalJSON() ([]byte, error) { return s.d.MarshalJSON() }

// UnmarshalJSON reads it back.
func (s *Snapshot) UnmarshalJSON(b []byte) error { return s.d.UnmarshalJSON(b) }
