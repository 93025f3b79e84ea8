package agentsdk

import (
	"errors"
	"strconv"
	"testing"

	"github.com/leat-dev/leat/dialect"
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

func TestInvalid(t *testing.T) {
	for name, frames := range map[string][]string{
		"no type":                {`{}`},
		"delta of no block":      {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`},
		"delta of nothing":       {`{"type":"content_block_delta","index":0}`},
		"block of nothing":       {`{"type":"content_block_start","index":0}`},
		"text of the wrong type": {`{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}`},
		"text for a tool":        {`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`},
		"an id with controls":    {`{"type":"tool_execution_start","tool_use_id":"a\u0001"}`},
	} {
		t.Run(name, func(t *testing.T) { dialecttest.Invalid(t, Dialect(), frames) })
	}
}

// The number of parts is limited, so a hostile server can't make the state grow without end.
func TestParts(t *testing.T) {
	d := Dialect().Decoder()
	for i := range 20_000 {
		if i%100 == 0 {
			if _, err := d.Decode(dialect.Frame{Data: []byte(`{"type":"message_start"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := d.Decode(dialect.Frame{Data: []byte(`{"type":"content_block_start","index":` + strconv.Itoa(i) + `,"content_block":{"type":"text"}}`)})
		var bad *dialect.Error
		if errors.As(err, &bad) {
			if i < 1000 {
				t.Errorf("block %d: %v", i, err)
			}
			return
		}
	}
	t.Error("20,000 blocks are accepted")
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[frame](f, Dialect()) }
