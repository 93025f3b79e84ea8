package sqlite

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/internal/store/journal"
)

// secret is the key of one conversation. All of its text lies in the file enciphered with it, and a delete overwrites the
// key. That keeps nothing from a person who can read the file, in which the key lies too; it is what makes a delete
// complete. secure_delete alone does not: when SQLite moves rows between pages it leaves copies of them in the unused
// middle of pages (measured: in three of four runs of TestDeleteLeavesNothing), where nothing overwrites them later.
//
// Each text is authenticated (AES-GCM) together with the place where it belongs. So a byte that the disk changed, and a row
// that was put in another's place, is an error when it is read, and never a text that nobody wrote.
type secret struct {
	aead cipher.AEAD
	n    int64 // of the conversation
}

const (
	// keySize is that of AES-128, in bytes.
	keySize = 16
	// nonceSize and sealOverhead are what a sealed text is longer by: a random nonce in front, and with it a tag at the end. A
	// key seals a few texts for each commit, far fewer than the 2^32 for which random nonces are safe.
	nonceSize    = 12
	sealOverhead = nonceSize + 16
)

// place is where a sealed text belongs in its conversation.
type place struct {
	kind              byte
	firstSeq, lastSeq int64  // seqs, of events and traces
	name              string // of a key; the turn of a trace
}

// The kinds of places.
const (
	inLive    = 'l'
	inSettled = 's'
	inSummary = 'c'
	inTrace   = 't'
	inKey     = 'k'
)

func (p place) String() string {
	switch p.kind {
	case inSummary:
		return "summary"
	case inTrace:
		return "trace of turn " + p.name
	case inKey:
		return "key " + p.name
	}
	return fmt.Sprintf("events %d to %d", p.firstSeq, p.lastSeq)
}

// newKey returns a key for a new conversation.
func newKey() []byte {
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	return key
}

var errNoKey = errors.New("the conversation's key is gone")

// secretOf makes the secret of conversation number n of its key as the file has it; errNoKey if the conversation was deleted.
func secretOf(n int64, key []byte) (*secret, error) {
	if len(key) != keySize || [keySize]byte(key) == [keySize]byte{} {
		return nil, errNoKey
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &secret{aead, n}, nil
}

// bind returns what a text at a place is authenticated with.
func (s *secret) bind(p place) []byte {
	b := make([]byte, 0, 64)
	b = append(b, p.kind)
	for _, n := range []int64{s.n, p.firstSeq, p.lastSeq} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(b, p.name...)
}

// seal appends to dst what the file holds of a text that comes in pieces: a nonce, the enciphered text, and its tag.
func (s *secret) seal(dst []byte, at place, pieces ...[]byte) []byte {
	size := sealOverhead
	for _, p := range pieces {
		size += len(p)
	}
	from := len(dst)
	dst = slices.Grow(dst, size)[:from+nonceSize]
	nonce := dst[from:]
	rand.Read(nonce) // never fails
	text := len(dst)
	for _, p := range pieces {
		dst = append(dst, p...)
	}
	return dst[:text+len(s.aead.Seal(dst[text:text], nonce, dst[text:], s.bind(at)))]
}

// open deciphers in place what seal made for a place, and returns the text. Its error wraps [journal.ErrCorrupt].
func (s *secret) open(b []byte, at place) ([]byte, error) {
	if len(b) < sealOverhead {
		return nil, fmt.Errorf("%s: a text of %d bytes: %w", at, len(b), journal.ErrCorrupt)
	}
	text, err := s.aead.Open(b[nonceSize:nonceSize], b[:nonceSize], b[nonceSize:], s.bind(at))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", at, journal.ErrCorrupt, err)
	}
	return text, nil
}
