package pcm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// sine returns n samples of a tone at nearly full scale.
func sine(rate, hertz, n int) []byte {
	b := make([]byte, 0, 2*n)
	for i := range n {
		x := 30_000 * math.Sin(2*math.Pi*float64(hertz)*float64(i)/float64(rate))
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(math.Round(x))))
	}
	return b
}

func samplesOf(b []byte) []float64 {
	out := make([]float64, len(b)/2)
	for i := range out {
		out[i] = float64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	}
	return out
}

func resampled(t testing.TB, from, to int, in []byte) []byte {
	t.Helper()
	r, err := newResampler(from, to)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Flush(r.Append(nil, in))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// snr returns the ratio in dB between a tone and the noise in the output. The expected tone has a fixed amplitude and phase, so attenuation and
// delay count as noise too.
func snr(rate, hertz int, out []byte) float64 {
	signal, noise := 0.0, 0.0
	all := samplesOf(out)
	const edge = 200 // the tone begins and ends suddenly, which no filter passes
	for i := edge; i < len(all)-edge; i++ {
		want := 30_000 * math.Sin(2*math.Pi*float64(hertz)*float64(i)/float64(rate))
		signal += want * want
		noise += (all[i] - want) * (all[i] - want)
	}
	return 10 * math.Log10(signal/noise)
}

func TestTones(t *testing.T) {
	for _, c := range []struct {
		from, to int
		hertz    []int
	}{
		{22_050, 24_000, []int{100, 440, 1_000, 3_400, 7_000, 9_000}},
		{16_000, 24_000, []int{100, 1_000, 6_500}},
		{44_100, 24_000, []int{100, 1_000, 3_400, 9_500}},
		{48_000, 24_000, []int{100, 1_000, 9_500}},
		{24_000, 16_000, []int{100, 1_000, 6_500}},
		{22_050, 16_000, []int{100, 1_000, 6_500}},
		{8_000, 24_000, []int{100, 1_000, 3_200}},
		{44_101, 23_999, []int{1_000, 8_000}}, // 23,999 phases, which are interpolated
		{11_025, 24_000, []int{1_000, 4_000}},
		{24_000, 24_000, []int{1_000}},
	} {
		for _, hertz := range c.hertz {
			out := resampled(t, c.from, c.to, sine(c.from, hertz, c.from))
			if db := snr(c.to, hertz, out); db < 70 {
				t.Errorf("%d to %d Hz, tone of %d Hz: signal to noise %.1f dB, want 70", c.from, c.to, hertz, db)
			} else {
				t.Logf("%d to %d Hz, tone of %d Hz: %.1f dB", c.from, c.to, hertz, db)
			}
		}
	}
}

// A tone above half the output rate must not come back as another tone.
func TestNoAlias(t *testing.T) {
	for _, c := range []struct{ from, to, hertz int }{{24_000, 16_000, 9_000}, {48_000, 24_000, 13_500}, {44_100, 16_000, 12_000}, {96_000, 8_000, 20_000}} {
		all := samplesOf(resampled(t, c.from, c.to, sine(c.from, c.hertz, c.from)))
		power := 0.0
		for _, x := range all[200 : len(all)-200] {
			power += x * x
		}
		rms := math.Sqrt(power / float64(len(all)-400))
		if db := 20 * math.Log10(rms/(30_000/math.Sqrt2)); db > -70 {
			t.Errorf("%d to %d Hz: a tone of %d Hz is suppressed by %.1f dB, want 70", c.from, c.to, c.hertz, -db)
		}
	}
}

func TestLength(t *testing.T) {
	rates := []int{8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 4_001, 191_999}
	for _, from := range rates {
		for _, to := range []int{16_000, 24_000} {
			for _, n := range []int{0, 1, 2, 7, 63, 64, 65, 100, 1_000, 7_347} {
				want := (n*to + from - 1) / from
				if got := len(resampled(t, from, to, make([]byte, 2*n))) / 2; got != want {
					t.Errorf("%d samples from %d to %d Hz: %d samples, want %d", n, from, to, got, want)
				}
			}
		}
	}
	if got := len(resampled(t, 22_050, 24_000, make([]byte, 2*73_473))) / 2; got != 79_971 {
		t.Errorf("73,473 samples became %d, want 79,971", got)
	}
}

func TestLevel(t *testing.T) {
	in := bytes.Repeat([]byte{0xff, 0x7f}, 2_000)
	for i, x := range samplesOf(resampled(t, 22_050, 24_000, in))[100:2_000] {
		if x != math.MaxInt16 {
			t.Fatalf("sample %d of a constant signal at full scale is %v", i+100, x)
		}
	}
}

// A square wave at full scale overshoots. It must be clipped, not wrap around.
func TestClip(t *testing.T) {
	in := bytes.Repeat(append(bytes.Repeat([]byte{0xff, 0x7f}, 40), bytes.Repeat([]byte{0x00, 0x80}, 40)...), 50)
	all := samplesOf(resampled(t, 22_050, 24_000, in))
	changes := 0
	for i := 1; i < len(all); i++ {
		if all[i] < 0 != (all[i-1] < 0) {
			changes++
		}
	}
	if changes < 98 || changes > 100 { // a sample at each end may be on either side
		t.Errorf("50 periods have %d changes of the sign, want 99", changes)
	}
}

func TestChunking(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	in := make([]byte, 20_001) // it ends within a sample
	for i := range in {
		in[i] = byte(random.Uint32())
	}
	for _, rates := range [][2]int{{22_050, 24_000}, {48_000, 16_000}, {24_000, 24_000}, {44_101, 23_999}, {8_000, 24_000}} {
		whole, err := newResampler(rates[0], rates[1])
		if err != nil {
			t.Fatal(err)
		}
		want, err := whole.Flush(whole.Append(nil, in))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("an odd length: %v", err)
		}
		for _, size := range []int{1, 2, 3, 7, 64, 999, 4_096, 0} {
			r, err := newResampler(rates[0], rates[1])
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for rest := in; len(rest) > 0; {
				n := size
				if n == 0 {
					n = random.IntN(300)
				}
				n = min(n, len(rest))
				if got = r.Append(got, rest[:n]); len(got)%2 != 0 {
					t.Fatalf("an odd output of %d bytes", len(got))
				}
				rest = rest[n:]
			}
			if got, err = r.Flush(got); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("an odd length: %v", err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%v with chunks of %d bytes: %d bytes, which differ from %d", rates, size, len(got), len(want))
			}
		}
	}
}

func TestRates(t *testing.T) {
	for _, rates := range [][2]int{{0, 24_000}, {24_000, 0}, {-1, 24_000}, {minRate - 1, 24_000}, {24_000, maxRate + 1}} {
		if _, err := newResampler(rates[0], rates[1]); !errors.Is(err, ErrRate) {
			t.Errorf("%v: %v", rates, err)
		}
		if _, err := NewReader(nil, rates[0], rates[1]); !errors.Is(err, ErrRate) {
			t.Errorf("%v: %v", rates, err)
		}
	}
}

func TestReader(t *testing.T) {
	in := sine(22_050, 440, 5_000)
	want := resampled(t, 22_050, 24_000, in)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		src  io.Reader
		want []byte // nil for a prefix
		err  error
	}{
		"whole":       {bytes.NewReader(in), want, nil},
		"single":      {iotest.OneByteReader(bytes.NewReader(in)), want, nil},
		"last + EOF":  {iotest.DataErrReader(bytes.NewReader(in)), want, nil},
		"odd end":     {bytes.NewReader(append(bytes.Clone(in), 1)), want, io.ErrUnexpectedEOF},
		"empty":       {bytes.NewReader(nil), []byte{}, nil},
		"interrupted": {io.MultiReader(bytes.NewReader(in), iotest.ErrReader(broken)), nil, broken},
	} {
		for _, size := range []int{1, 2, 3, 512, 1 << 16} {
			if _, ok := c.src.(io.Seeker); ok {
				_, _ = c.src.(io.Seeker).Seek(0, io.SeekStart)
			} else if size != 512 { // the other sources can be read once
				continue
			}
			r, err := NewReader(c.src, 22_050, 24_000)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for buf := make([]byte, size); err == nil; {
				var n int
				if n, err = r.Read(buf); n%2 != 0 && size > 1 {
					t.Fatalf("%s: a read of %d bytes", name, n)
				}
				got = append(got, buf[:n]...)
			}
			if end := c.err; end == nil && err != io.EOF || end != nil && !errors.Is(err, end) {
				t.Errorf("%s: ended with %v, want %v", name, err, end)
			}
			if _, more := r.Read(make([]byte, 10)); more != err {
				t.Errorf("%s: a read after %v returns %v", name, err, more)
			}
			if c.want == nil && !bytes.HasPrefix(want, got) || c.want != nil && !bytes.Equal(got, c.want) {
				t.Errorf("%s by %d bytes: wrong output of %d bytes", name, size, len(got))
			}
		}
	}
}

func FuzzChunking(f *testing.F) {
	f.Add([]byte("some samples, an even number"), []byte{3, 1, 9}, uint16(22_050), true)
	f.Add([]byte{1, 2, 3}, []byte{}, uint16(8_000), false)
	f.Fuzz(func(t *testing.T, in, cuts []byte, rate uint16, up bool) {
		from, to := int(rate), 24_000
		if !up {
			from, to = to, from
		}
		whole, err := newResampler(from, to)
		if err != nil {
			return // the rate is out of range
		}
		want, wantErr := whole.Flush(whole.Append(nil, in))
		if n := len(in) / 2; len(want)/2 != (n*to+from-1)/from {
			t.Fatalf("%d samples became %d", n, len(want)/2)
		}
		r, _ := newResampler(from, to)
		var got []byte
		rest := in
		for _, cut := range cuts {
			n := min(int(cut), len(rest))
			got, rest = r.Append(got, rest[:n]), rest[n:]
		}
		got, err = r.Flush(r.Append(got, rest))
		if !errors.Is(err, wantErr) || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v; want %d, %v", len(got), err, len(want), wantErr)
		}
	})
}

// One second of audio, in the chunks in which it is sent.
func BenchmarkResample(b *testing.B) {
	for _, rates := range [][2]int{{22_050, 24_000}, {16_000, 24_000}, {48_000, 24_000}, {22_050, 16_000}} {
		b.Run(fmt.Sprintf("%d-%d", rates[0], rates[1]), func(b *testing.B) {
			in := sine(rates[0], 440, rates[0])
			out := make([]byte, 0, 4<<10)
			b.ReportAllocs()
			r, err := newResampler(rates[0], rates[1])
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for rest := in; len(rest) > 0; {
					n := min(rates[0]/50*2, len(rest))
					out = r.Append(out[:0], rest[:n])
					rest = rest[n:]
				}
			}
		})
	}
}

func BenchmarkNewResampler(b *testing.B) {
	for b.Loop() {
		if _, err := newResampler(22_050, 24_000); err != nil {
			b.Fatal(err)
		}
	}
}
