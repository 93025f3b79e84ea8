package a2a

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

// Results of version 1.0 are decoded as encoding/json decodes them.
func FuzzWireResult(f *testing.F) {
	dialecttest.FuzzWire[struct {
		Result update `json:"result"`
	}](f, Dialect())
}

// Artifacts of version 0.3 are decoded as encoding/json decodes them.
func FuzzWireArtifact(f *testing.F) {
	dialecttest.FuzzWire[struct {
		Result artifactUpdate `json:"result"`
	}](f, Dialect())
}
