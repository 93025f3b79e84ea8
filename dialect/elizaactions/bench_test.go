package elizaactions

import (
	"testing"

	"github.com/leat-dev/leat/dialect"
)

// BenchmarkChunk decodes one chunk, from the bytes of the stream to its operation.
func BenchmarkChunk(b *testing.B) {
	s := dialect.NewStream(Dialect())
	if _, err := s.Write([]byte(`{"type":"chunk","text":"Hi"}` + "\n")); err != nil {
		b.Fatal(err)
	}
	chunk := []byte(`{"type":"chunk","text":" are the key news,\nfrom"}` + "\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(chunk)))
	n := 0
	for i := 0; i < b.N; i++ {
		ops, err := s.Write(chunk)
		if err != nil {
			b.Fatal(err)
		}
		n += len(ops)
	}
	if n != b.N {
		b.Fatalf("%d operations of %d chunks", n, b.N)
	}
}
