package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Header is the name of the header that carries a signature.
const Header = "Leat-Signature"

// MaxAge is how far a signature's time may be from the receiver's clock: what clocks differ by and requests take.
const MaxAge = 5 * time.Minute

// maxHeader bounds a header that is looked at, in bytes; a dozen signatures fit.
const maxHeader = 1 << 10

var (
	// ErrMissing says that there is no signature, or none in a form that is known.
	ErrMissing = errors.New("signature: missing or malformed")
	// ErrWrong says that the signature is not that of this body, time and secret.
	ErrWrong = errors.New("signature: wrong")
	// ErrOld says that the signature was right but not made about now.
	ErrOld = errors.New("signature: too old or from the future")
)

// Sign returns the header's value for a body that is sent at a time.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(sum(secret, t, body))
}

// Verify checks a header's value. now is the receiver's clock; age is how far the signature's time may be from it, [MaxAge]
// where it is 0. The error is ErrMissing, ErrWrong or ErrOld.
func Verify(secret, header string, body []byte, now time.Time, age time.Duration) error {
	if age == 0 {
		age = MaxAge
	}
	if len(header) > maxHeader {
		return ErrMissing
	}
	t := ""
	var given [][]byte
	for pair := range strings.SplitSeq(header, ",") {
		switch key, value, _ := strings.Cut(strings.TrimSpace(pair), "="); key {
		case "t":
			t = value
		case "v1":
			if mac, err := hex.DecodeString(value); err == nil {
				given = append(given, mac)
			}
		}
	}
	unix, err := strconv.ParseInt(t, 10, 64)
	if err != nil || len(given) == 0 || secret == "" {
		return ErrMissing
	}
	right, want := false, sum(secret, t, body)
	for _, mac := range given {
		right = hmac.Equal(mac, want) || right
	}
	if !right {
		return ErrWrong
	}
	if off := now.Sub(time.Unix(unix, 0)); off > age || off < -age {
		return fmt.Errorf("%w: signed %v from now", ErrOld, off.Round(time.Second))
	}
	return nil
}

func sum(secret, t string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t)) // never fails, as the two below
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}
