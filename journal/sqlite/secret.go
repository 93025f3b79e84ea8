package sqlite

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/journal"
)

// secret is the key of one conversation. All of its text lies in the file enciphered with it, and a delete overwrites the
// key. That keeps nothing from a person who can read the file, in which the key lies too; it is what makes a delete
// complete. secure_delete alone does not: when SQLite moves rows between pages it leaves copies of them in the unused
// middle of pages (measured: in three of four runs of TestDeleteLeavesNothing), where nothing overwrites them later.
type secret struct{ block cipher.Block }

// keySize is that of AES-128, in bytes.
const keySize = 16

// newKey returns a key for a new conversation.
func newKey() []byte {
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	return key
}

var errNoKey = errors.New("the conversation's key is gone")

// secretOf makes a secret of a key as the file has it; errNoKey where the conversation was deleted.
func secretOf(key []byte) (*secret, error) {
	if len(key) != keySize || [keySize]byte(key) == [keySize]byte{} {
		return nil, errNoKey
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &secret{block}, nil
}

// seal appends to dst what the file holds of a text that comes in pieces: a random start value and the enciphered text.
func (s *secret) seal(dst []byte, pieces ...[]byte) []byte {
	var iv [aes.BlockSize]byte
	rand.Read(iv[:]) // never fails
	dst = append(dst, iv[:]...)
	from := len(dst)
	for _, p := range pieces {
		dst = append(dst, p...)
	}
	cipher.NewCTR(s.block, iv[:]).XORKeyStream(dst[from:], dst[from:])
	return dst
}

// open deciphers in place what seal made, and returns the text.
func (s *secret) open(b []byte) ([]byte, error) {
	if len(b) < aes.BlockSize {
		return nil, fmt.Errorf("a text of %d bytes: %w", len(b), journal.ErrCorrupt)
	}
	text := b[aes.BlockSize:]
	cipher.NewCTR(s.block, b[:aes.BlockSize]).XORKeyStream(text, text)
	return text, nil
}
