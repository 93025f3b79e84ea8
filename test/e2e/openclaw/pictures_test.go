//go:build e2e

package openclaw

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	_ "image/jpeg" // a gateway may re-encode pictures
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// shows checks that the turn has one picture, whose bytes are in Leat's store.
func (s *stage) shows(t *testing.T, a *harness.Answer, want []byte) {
	t.Helper()
	n := 0
	for _, p := range a.Parts {
		if p.Kind != event.KindMedia {
			continue
		}
		n++
		if p.Media == nil || !strings.HasPrefix(p.Media.URL, "/api/") {
			t.Fatalf("the part shows %+v, %+v", p.Media, p.Error)
		}
		res, err := http.Get(s.URL + p.Media.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("the picture has %d bytes (%v), the agent's %d", len(got), err, len(want))
		}
	}
	if n != 1 {
		t.Errorf("%d pictures are shown", n)
	}
}

func (s *stage) upload(t *testing.T) {
	c := s.CreateConversation(t, "claw")
	mine := drawing(t, 48)
	res, err := http.Post(s.URL+"/api/conversations/"+c+"/files?name=mine.png", "image/png", bytes.NewReader(mine))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var stored struct{ Media event.Media }
	if err := json.NewDecoder(res.Body).Decode(&stored); err != nil || stored.Media.URL == "" {
		t.Fatalf("upload: %d, %v", res.StatusCode, err)
	}
	ack, err := s.Do(t.Context(), c, leat.Command{Type: "send", Message: &leat.Message{
		Text: "please do SCRIPT-IMAGE", Parts: []event.Part{{Kind: event.KindMedia, Media: &stored.Media}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	a := s.WaitAnswer(t, c, ack.Turn)
	a.CheckOutcome(t, event.Completed)
	a.CheckText(t, "I see a picture.")
	if images := s.model.Images(); !slices.ContainsFunc(images, func(b []byte) bool { return alike(b, mine) }) {
		t.Errorf("the model got %d pictures, and not the one that was sent", len(images))
	}
}

// alike reports whether two pictures show the same, however they are encoded.
func alike(a, b []byte) bool {
	one, _, err := image.Decode(bytes.NewReader(a))
	if err != nil {
		return false
	}
	other, _, err := image.Decode(bytes.NewReader(b))
	if err != nil || one.Bounds() != other.Bounds() {
		return false
	}
	off, n := 0, 0
	for y := one.Bounds().Min.Y; y < one.Bounds().Max.Y; y++ {
		for x := one.Bounds().Min.X; x < one.Bounds().Max.X; x++ {
			r1, g1, b1, _ := one.At(x, y).RGBA()
			r2, g2, b2, _ := other.At(x, y).RGBA()
			off += apart(r1, r2) + apart(g1, g2) + apart(b1, b2)
			n += 3
		}
	}
	return n > 0 && off/n < 0x1000 // less than a sixteenth: re-encoding changes pixels a little
}

func apart(a, b uint32) int { return max(int(a)-int(b), int(b)-int(a)) }

// drawing is a picture of so many pixels square, the same each time.
func drawing(t *testing.T, n int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, n, n))
	for i := range n * n {
		m.Set(i%n, i/n, color.RGBA{uint8(i), uint8(i * 3), uint8(i * 7), 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
