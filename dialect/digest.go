package dialect

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
)

// digest is the length and the 128-bit FNV-1a hash of a text that isn't stored. A copy of a digest is a record of the text at that time.
// The hash detects changes, not attacks: an upstream that forges a collision only garbles its own answer.
type digest struct {
	n      int64
	hi, lo uint64
}

const (
	fnvHi    = 0x6c62272e07bb0142
	fnvLo    = 0x62b821756295c58d
	fnvPrime = 0x13b // the FNV prime is 2^88 + 0x13b; add shifts for the high bit
)

// add appends s to the digested text. The multiplication is that of 128-bit FNV-1a in two words: the prime has one bit in the high word and
// fnvPrime in the low one.
func (d *digest) add(s string) {
	if s == "" {
		return // the digest of an empty text is the zero value, so that omitzero drops it
	}
	if d.n == 0 {
		d.hi, d.lo = fnvHi, fnvLo
	}
	hi, lo := d.hi, d.lo
	for i := range len(s) {
		lo ^= uint64(s[i])
		carry, low := bits.Mul64(lo, fnvPrime)
		hi, lo = hi*fnvPrime+carry+lo<<24, low
	}
	d.hi, d.lo = hi, lo
	d.n += int64(len(s))
}

// digestOf returns the digest of s.
func digestOf(s string) (d digest) {
	d.add(s)
	return d
}

// MarshalJSON encodes the length and hash.
func (d digest) MarshalJSON() ([]byte, error) { return d.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON returns. A state is encoded with nearly every commit of a pushed turn, and encoding/json would
// check the result.
func (d *digest) AppendJSON(b []byte) ([]byte, error) {
	var sum [16]byte
	binary.BigEndian.PutUint64(sum[:], d.hi)
	binary.BigEndian.PutUint64(sum[8:], d.lo)
	b = strconv.AppendInt(append(b, `{"n":`...), d.n, 10)
	b = hex.AppendEncode(append(b, `,"h":"`...), sum[:])
	return append(b, `"}`...), nil
}

// UnmarshalJSON restores what MarshalJSON encoded.
func (d *digest) UnmarshalJSON(p []byte) error {
	var j struct {
		N int64  `json:"n"`
		H string `json:"h"`
	}
	if err := json.Unmarshal(p, &j); err != nil {
		return err
	}
	b, err := hex.DecodeString(j.H)
	if err != nil || len(b) != 16 || j.N < 0 {
		return errDigest
	}
	*d = digest{j.N, binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	return nil
}

var errDigest = errors.New("dialect: malformed digest")

// trimmed is the digest of a growing text without leading and trailing white space. White space at the end may turn out to be in
// the middle when more text arrives, so the digest with it is stored too.
type trimmed struct {
	Full digest `json:"full,omitzero"` // from the first character that isn't white space to the end
	Trim digest `json:"trim,omitzero"` // from there to the last character that isn't white space
}

// add appends s to the text.
func (t *trimmed) add(s string) {
	if t.Full.n == 0 {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
	}
	if body := strings.TrimRightFunc(s, unicode.IsSpace); body != "" {
		t.Full.add(body)
		t.Trim = t.Full
		s = s[len(body):]
	}
	t.Full.add(s)
}

// is reports whether the trimmed text equals s. s must be trimmed and not empty.
func (t *trimmed) is(s string) bool { return t.Trim.n == int64(len(s)) && t.Trim == digestOf(s) }
