package anthropic

import (
	"testing"

	"github.com/leat-dev/leat/dialect"
)

// BenchmarkDelta decodes one text delta, from the bytes of the stream to its operation.
func BenchmarkDelta(b *testing.B) {
	s := dialect.NewStream(Dialect())
	for _, f := range []string{
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"usage\":{\"input_tokens\":1}}}\n\n",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
	} {
		if _, err := s.Write([]byte(f)); err != nil {
			b.Fatal(err)
		}
	}
	delta := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" are the key news,\\nfrom\"}       }\n\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(delta)))
	n := 0
	for i := 0; i < b.N; i++ {
		ops, err := s.Write(delta)
		if err != nil {
			b.Fatal(err)
		}
		n += len(ops)
	}
	if n != b.N {
		b.Fatalf("%d operations of %d deltas", n, b.N)
	}
}
