package webpush

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"testing"
)

func decode(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// receiver is the browser's side of a subscription.
type receiver struct {
	key  *ecdh.PrivateKey
	auth []byte
}

func (r *receiver) subscription(endpoint string) Subscription {
	return Subscription{Endpoint: endpoint, Keys: subscriptionKeys{
		P256DH: base64.RawURLEncoding.EncodeToString(r.key.PublicKey().Bytes()), Auth: base64.RawURLEncoding.EncodeToString(r.auth),
	}}
}

// decrypt follows RFC 8291, section 3.4, and RFC 8188 step by step with HMACs, so it shares nothing with encrypt.
func (r *receiver) decrypt(t *testing.T, body []byte) []byte {
	t.Helper()
	salt, size, length := body[:16], binary.BigEndian.Uint32(body[16:20]), int(body[20])
	public, record := body[21:21+length], body[21+length:]
	if len(body) > 4096 || len(record) > int(size) {
		t.Fatalf("a body of %d bytes, whose record has %d", len(body), len(record))
	}
	sender, err := ecdh.P256().NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := r.key.ECDH(sender)
	if err != nil {
		t.Fatal(err)
	}
	mac := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha256.New, key)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	input := mac(mac(r.auth, shared), []byte("WebPush: info\x00"), r.key.PublicKey().Bytes(), public, []byte{1})
	prk := mac(salt, input)
	key := mac(prk, []byte("Content-Encoding: aes128gcm\x00\x01"))[:16]
	nonce := mac(prk, []byte("Content-Encoding: nonce\x00\x01"))[:12]
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gcm.Open(nil, nonce, record, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain = bytes.TrimRight(plain, "\x00")
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		t.Fatalf("the last record ends in %v", plain)
	}
	return plain[:len(plain)-1]
}

// The example of RFC 8291, appendix A.
func TestExampleOfTheRFC(t *testing.T) {
	sender, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdh.P256().NewPrivateKey(decode(t, "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{key, decode(t, "BTBZMqHH6r4Tts7J_aSIgg")}
	sub := r.subscription("https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV")
	if sub.Keys.P256DH != "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4" {
		t.Fatalf("the browser's key is %s", sub.Keys.P256DH)
	}
	const text = "When I grow up, I want to be a watermelon"
	want := decode(t, "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"+
		"yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
	got, err := encryptWith([]byte(text), &sub, sender, decode(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the body is %x, want %x", got, want)
	}
	if plain := r.decrypt(t, want); string(plain) != text {
		t.Errorf("decrypted: %q", plain)
	}
}

// Each message has its own key and salt, padded keys are accepted, and the longest payload fits into 4,096 bytes.
func TestEncrypt(t *testing.T) {
	r := newReceiver(t)
	sub := r.subscription("https://example.com/1")
	sub.Keys.Auth += "=="
	bodies := map[string]bool{}
	for _, n := range []int{0, 1, maxPayload, maxPayload} {
		payload := bytes.Repeat([]byte("x"), n)
		body, err := encrypt(payload, &sub)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.decrypt(t, body); !bytes.Equal(got, payload) {
			t.Errorf("%d bytes came out as %d", n, len(got))
		}
		bodies[string(body[:86])] = true
	}
	if len(bodies) != 4 {
		t.Errorf("4 messages have %d heads", len(bodies))
	}
	if _, err := encrypt(make([]byte, maxPayload+1), &sub); !errors.Is(err, errTooLong) {
		t.Errorf("too long: %v", err)
	}
}

func TestCheck(t *testing.T) {
	r := newReceiver(t)
	good := r.subscription("https://fcm.googleapis.com/fcm/send/abc:def")
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Subscription){
		"http":         func(s *Subscription) { s.Endpoint = "http://push.example.com/x" },
		"no host":      func(s *Subscription) { s.Endpoint = "https:///x" },
		"password":     func(s *Subscription) { s.Endpoint = "https://a:b@push.example.com/x" },
		"loopback":     func(s *Subscription) { s.Endpoint = "https://127.0.0.1/x" },
		"IPv6":         func(s *Subscription) { s.Endpoint = "https://[::1]:8443/x" },
		"localhost":    func(s *Subscription) { s.Endpoint = "https://LocalHost./x" },
		"metadata":     func(s *Subscription) { s.Endpoint = "https://169.254.169.254/latest" },
		"too long":     func(s *Subscription) { s.Endpoint += string(make([]byte, maxEndpoint)) },
		"no key":       func(s *Subscription) { s.Keys.P256DH = "" },
		"not a point":  func(s *Subscription) { s.Keys.P256DH = base64.RawURLEncoding.EncodeToString(make([]byte, 65)) },
		"short secret": func(s *Subscription) { s.Keys.Auth = "AAAA" },
		"not base64":   func(s *Subscription) { s.Keys.Auth = "%%%" },
	} {
		s := good
		change(&s)
		if err := s.Check(); !errors.Is(err, ErrSubscription) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
