package native_test

import (
	"fmt"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// A read position set on one socket reaches every socket of the same user that follows positions.
func TestSocketRead(t *testing.T) {
	h := newHarness(t, options{})
	conv := h.create()
	phone, desk, quiet := h.greeted(), h.greeted(), h.greeted()
	for _, c := range []*client{phone, desk} {
		c.send(`{"type":"read"}`).send(`{"type":"ping"}`).want("pong", "")
	}
	told := func(c *client, id string, unread bool, read int64) {
		t.Helper()
		want := fmt.Sprintf(`{"type":"read",%s"conversation":"%s","unread":%t,"read":%d}`, id, conv, unread, read)
		for {
			f := c.next()
			if string(f.raw) == want {
				return
			}
			if f.Type != "read" || f.ID == "" && id == "" { // the answer and the notifications come in any order
				t.Fatalf("got %s, want %s", f.raw, want)
			}
		}
	}
	inject := func(id string) {
		t.Helper()
		quiet.send(`{"type":"command","id":%q,"conversation":%q,"command":{"type":"inject","message":{"text":"note"}}}`, id, conv).want("ack", id)
	}
	inject("1")
	told(phone, "", true, 0)
	told(desk, "", true, 0)
	phone.send(`{"type":"read","conversation":%q,"seq":1}`, conv)
	told(desk, "", false, 1)
	inject("2")
	told(desk, "", true, 1)
	desk.send(`{"type":"read","id":"r","conversation":%q}`, conv)
	told(desk, `"id":"r",`, false, 2)

	if f := quiet.send(`{"type":"read","id":"a","conversation":"nowhere"}`).want("rejected", "a"); f.Reason != server.ReasonNotFound {
		t.Errorf("unknown conversation: %s", f.raw)
	}
	if f := quiet.sendRaw([]byte(`{"type":"read","id":"b","conversation":"`+conv+`","seq":-1}`)).want("rejected", "b"); f.Reason != gateway.ReasonInvalid {
		t.Errorf("negative seq: %s", f.raw)
	}
}
