// Package signaturetest checks signatures in tests, as docs/webhooks.md tells receivers to do it. It shares no code with the package that
// signs, so that a mistake in one of them shows.
package signaturetest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxAge is the largest difference between a signature's time and the receiver's clock. It allows for clock skew and slow requests.
const maxAge = 5 * time.Minute

// maxHeader limits the header, in bytes. It fits a dozen signatures.
const maxHeader = 1 << 10

var (
	// errMissing says that the signature is missing or in an unknown form.
	errMissing = errors.New("signature: missing or malformed")
	// errWrong says that the signature doesn't match the body, time and secret.
	errWrong = errors.New("signature: wrong")
	// errOld says that the signature matches, but its time is too far from now.
	errOld = errors.New("signature: too old or from the future")
)

// Verify checks the value of the header. receivedAt is the time of the receiver's clock. age is the largest accepted difference
// to it; if it is 0, five minutes are accepted. The error says whether the signature is missing, wrong or too old.
func Verify(secret, header string, body []byte, receivedAt time.Time, age time.Duration) error {
	age = cmp.Or(age, maxAge)
	if len(header) > maxHeader {
		return errMissing
	}
	t := ""
	var macs [][]byte
	for pair := range strings.SplitSeq(header, ",") {
		switch key, value, _ := strings.Cut(strings.TrimSpace(pair), "="); key {
		case "t":
			t = value
		case "v1":
			if m, err := hex.DecodeString(value); err == nil {
				macs = append(macs, m)
			}
		}
	}
	unix, err := strconv.ParseInt(t, 10, 64)
	if err != nil || len(macs) == 0 || secret == "" {
		return errMissing
	}
	right, want := false, mac(secret, t+"."+string(body))
	for _, m := range macs {
		right = hmac.Equal(m, want) || right
	}
	if !right {
		return errWrong
	}
	if skew := receivedAt.Sub(time.Unix(unix, 0)); skew > age || skew < -age {
		return fmt.Errorf("%w: signed %v from now", errOld, skew.Round(time.Second))
	}
	return nil
}

func mac(secret, signed string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(signed)) // never fails
	return h.Sum(nil)
}
