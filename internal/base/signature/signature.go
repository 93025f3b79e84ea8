package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Header is the name of the header with the signature.
const Header = "Leat-Signature"

// Sign returns the value of the header for a body sent at a time.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(sum(secret, t, body))
}

func sum(secret, t string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t)) // never fails, nor do the two writes below
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}
