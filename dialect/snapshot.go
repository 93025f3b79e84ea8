package dialect

import "github.com/leat-dev/leat/event"

// Snapshot turns snapshots of one growing text into operations. It stores only the length and hash of the text, so that a decoder's
// state stays small. The zero value is an empty text. Snapshot can be marshalled to JSON and back.
type Snapshot struct{ digest }

// Next compares text, the next snapshot, with the current text and makes it the current one. It returns [event.PartAppend] and the new
// suffix if text extends the current one, [event.PartReplace] and text if it differs, and an empty type if it is equal.
func (s *Snapshot) Next(text string) (event.Type, string) {
	if int64(len(text)) >= s.n {
		length := int(s.n)
		d := digestOf(text[:length])
		if length == 0 || d == s.digest {
			d.add(text[length:])
			s.digest = d
			if length == len(text) {
				return "", ""
			}
			return event.PartAppend, text[length:]
		}
	}
	s.digest = digestOf(text)
	return event.PartReplace, text
}

// Is reports whether the current text equals text.
func (s *Snapshot) Is(text string) bool {
	return s.n == int64(len(text)) && (s.n == 0 || s.digest == digestOf(text))
}

// Append appends a delta, for formats that mix deltas and snapshots.
func (s *Snapshot) Append(delta string) { s.add(delta) }

// Len returns the length of the current text in bytes.
func (s *Snapshot) Len() int64 { return s.n }
