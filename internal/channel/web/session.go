package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const (
	// tokenPrefix makes session tokens recognizable, for example in a log in which they must not be.
	tokenPrefix = "wv_"
	// tokenBytes is the randomness of a session token: too much to guess, so knowing a token proves that it was given to the visitor.
	tokenBytes = 32
	// chatBytes is the length of a chat's id before it is written as hexadecimal. 128 bits make it impossible to find
	// a second token with the same id.
	chatBytes = 16
)

// newToken returns a new session token. It is the only credential of a visitor, so it must not be logged.
func newToken() string {
	random := make([]byte, tokenBytes)
	rand.Read(random) // never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
}

// chatOf returns the id of the chat to which a session token belongs, or "" if the token doesn't have the right form. The id is a
// hash, so those who see it, such as operators, can't take over the session. Visitors can invent a token, but not that of another.
func chatOf(token string) string {
	encoded, ok := strings.CutPrefix(token, tokenPrefix)
	if b, err := base64.RawURLEncoding.Strict().DecodeString(encoded); !ok || err != nil || len(b) != tokenBytes {
		return ""
	}
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:chatBytes])
}

// isChat reports whether a text can be the id of a chat. Whether the chat exists isn't known, because sessions aren't
// stored.
func isChat(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == chatBytes
}

// newID returns a random id that can't be guessed.
func newID() string { return strings.ToLower(rand.Text()) }
