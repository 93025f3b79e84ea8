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

// secret is the key of one conversation. All of its text in the file is sealed with the key, and a delete overwrites the key. The
// key is in the same file, so it doesn't protect the text from a person who can read the file. It makes deletion complete.
// secure_delete alone doesn't: when SQLite moves rows between pages, it leaves copies in the unused middle of pages, and nothing
// overwrites these later (seen in three of four runs of TestDeleteLeavesNothing).
//
// Each text is authenticated (AES-GCM) together with its place. A byte that the disk changed, or a row that was moved, is therefore
// an error on reading and never a wrong text.
type secret struct {
	aead cipher.AEAD
	n    int64 // number of the conversation
}

const (
	// keySize is the key size of AES-128, in bytes.
	keySize = 16
	// nonceSize and sealOverhead are the bytes that sealing adds: a random nonce in front and a tag at the end. A key seals a few
	// texts for each commit, far fewer than the 2^32 for which random nonces are safe.
	nonceSize    = 12
	sealOverhead = nonceSize + 16
)

// place identifies a sealed text within its conversation.
type place struct {
	kind              byte
	firstSeq, lastSeq int64  // seqs, of events and traces
	name              string // the key of a key-value, or the turn of a trace
}

// The kinds of places.
const (
	inLive      = 'l'
	inCompacted = 's'
	inSummary   = 'c'
	inTrace     = 't'
	inKey       = 'k'
)

// String describes the place in error messages.
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

// errNoKey says that the conversation was deleted, so its remaining rows can't be decrypted.
var errNoKey = errors.New("the conversation's key was deleted")

// secretOf creates the secret of conversation n from its stored key. It returns errNoKey if the conversation was deleted.
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

// bind returns the additional data that authenticates a text at a place.
func (s *secret) bind(p place) []byte {
	b := make([]byte, 0, 64)
	b = append(b, p.kind)
	for _, n := range []int64{s.n, p.firstSeq, p.lastSeq} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(b, p.name...)
}

// seal appends the sealed form of a text, given in pieces, to dst: a nonce, the encrypted text and a tag. All pieces are
// encrypted together, so a chunk of several batches needs a single nonce and tag.
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

// open decrypts the result of seal in place and returns the text. Its error wraps [journal.ErrCorrupt]. b is overwritten, so
// callers pass a buffer that they own.
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
