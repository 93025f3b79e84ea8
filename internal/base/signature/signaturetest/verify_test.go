package signaturetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/base/signature"
)

var at = time.Unix(1795194262, 0)

// The value was computed with openssl: printf '1795194262.{"a":1}' | openssl dgst -sha256 -hmac s3cret.
const known = "t=1795194262,v1=7369c5568e6d1ec3d041bd2a8b3e6caaa1682c6b136cded4496683ca0e6bacf0"

func TestVerify(t *testing.T) {
	body := []byte(`{"a":1}`)
	other := signature.Sign("other", at, body)
	_, wrong, _ := strings.Cut(other, ",")
	for name, tt := range map[string]struct {
		secret, header, body string
		now                  time.Duration // time since the signature
		want                 error
	}{
		"right":            {"s3cret", known, string(body), 0, nil},
		"spaces":           {"s3cret", strings.ReplaceAll(known, ",", ", "), string(body), 0, nil},
		"within the age":   {"s3cret", known, string(body), maxAge, nil},
		"a clock behind":   {"s3cret", known, string(body), -maxAge, nil},
		"one of two":       {"s3cret", known + "," + wrong, string(body), 0, nil},
		"the other of two": {"other", known + "," + wrong, string(body), 0, nil},
		"unknown pairs":    {"s3cret", "x," + known + ",v2=00,=", string(body), 0, nil},
		"too old":          {"s3cret", known, string(body), maxAge + time.Second, errOld},
		"from the future":  {"s3cret", known, string(body), -maxAge - time.Second, errOld},
		"another body":     {"s3cret", known, `{"a":2}`, 0, errWrong},
		"another secret":   {"other", known, string(body), 0, errWrong},
		"another time":     {"s3cret", strings.Replace(known, "262", "263", 1), string(body), 0, errWrong},
		"cut":              {"s3cret", known[:len(known)-2], string(body), 0, errWrong},
		"empty mac":        {"s3cret", "t=1795194262,v1=", string(body), 0, errWrong},
		"no mac":           {"s3cret", "t=1795194262", string(body), 0, errMissing},
		"no hex":           {"s3cret", "t=1795194262,v1=zz", string(body), 0, errMissing},
		"no time":          {"s3cret", known[len("t=1795194262,"):], string(body), 0, errMissing},
		"invalid time":     {"s3cret", "t=now," + known[len("t=1795194262,"):], string(body), 0, errMissing},
		"nothing":          {"s3cret", "", string(body), 0, errMissing},
		"no secret":        {"", signature.Sign("", at, body), string(body), 0, errMissing},
		"huge":             {"s3cret", known + strings.Repeat(",x=y", 1000), string(body), 0, errMissing},
	} {
		err := Verify(tt.secret, tt.header, []byte(tt.body), at.Add(tt.now), 0)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
	if err := Verify("s3cret", known, body, at.Add(time.Minute), time.Second); !errors.Is(err, errOld) {
		t.Errorf("with an accepted age of a second: %v", err)
	}
}
