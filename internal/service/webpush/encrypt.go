package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	// saltSize is the size of the salt at the start of a body, and keySize that of the AES-128 key, both in bytes
	// (RFC 8188, section 2.1).
	saltSize = 16
	keySize  = 16
	// recordSize is the size of the only record. Push services accept bodies of at least 4,096 bytes.
	recordSize = 4096
	// maxPayload is what fits into a body of 4,096 bytes: the header has 86 bytes, the end of the record 1, and its authentication 16.
	maxPayload = 4096 - 86 - 1 - 16
)

// encrypt returns the body of a push message: the payload in one record of the content coding aes128gcm (RFC 8188), with a key that only
// the owner of the subscription can derive (RFC 8291). Each message has a new key pair and a new salt.
func encrypt(payload []byte, s *Subscription) ([]byte, error) {
	sender, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // it never fails
	return encryptWith(payload, s, sender, salt)
}

// encryptWith is encrypt with a given key pair and salt, so that a test can compare the result with the example in
// RFC 8291, appendix A. The derivation has two steps: the shared secret and the browser's auth secret give the input
// key, and with the salt that gives the key and the nonce of the record. The body begins with the salt, the record
// size and the sender's public key, which the browser needs to derive the same keys.
//
// The error wraps errTooLong if the payload doesn't fit, and ErrSubscription if the browser's keys are invalid.
func encryptWith(payload []byte, s *Subscription, sender *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	if len(payload) > maxPayload {
		return nil, fmt.Errorf("%w: %d bytes", errTooLong, len(payload))
	}
	receiver, auth, err := s.keys()
	if err != nil {
		return nil, err
	}
	secret, err := sender.ECDH(receiver)
	if err != nil {
		return nil, fmt.Errorf("%w: p256dh: %w", ErrSubscription, err)
	}
	public := sender.PublicKey().Bytes()
	info := "WebPush: info\x00" + string(receiver.Bytes()) + string(public)
	input, err := hkdf.Key(sha256.New, secret, auth, info, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	key, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: aes128gcm\x00", keySize)
	if err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	nonce, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	body := append([]byte{}, salt...)
	body = binary.BigEndian.AppendUint32(body, recordSize)
	body = append(body, byte(len(public)))
	body = append(body, public...)
	record := append(append([]byte{}, payload...), 2) // 2 ends the last record
	return gcm.Seal(body, nonce, record, nil), nil
}
