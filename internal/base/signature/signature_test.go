package signature

import (
	"testing"
	"time"
)

var at = time.Unix(1795194262, 0)

// The value was computed with openssl: printf '1795194262.{"a":1}' | openssl dgst -sha256 -hmac s3cret.
const known = "t=1795194262,v1=7369c5568e6d1ec3d041bd2a8b3e6caaa1682c6b136cded4496683ca0e6bacf0"

func TestSign(t *testing.T) {
	if got := Sign("s3cret", at, []byte(`{"a":1}`)); got != known {
		t.Errorf("got %s, want %s", got, known)
	}
}
