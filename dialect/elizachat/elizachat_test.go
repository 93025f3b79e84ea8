package elizachat

import (
	"testing"

	"github.com/leat-dev/leat/dialect/dialecttest"
)

func TestGolden(t *testing.T) { dialecttest.Golden(t, Dialect(), dialecttest.OwnStreams(t, Dialect())) }

func TestConformance(t *testing.T) {
	dialecttest.Run(t, Dialect(), dialecttest.OwnStreams(t, Dialect()))
}

func FuzzDecode(f *testing.F) {
	for _, s := range dialecttest.OwnStreams(f, Dialect()) {
		f.Add(s.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[frame](f, Dialect()) }
