package pcm

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The supported sample rates in Hz. Speech services and microphones use 8,000 to 48,000; the limits bound the size of a filter.
const (
	minRate = 4_000
	maxRate = 192_000
)

// resampler changes the sample rate of a signal with a polyphase windowed sinc. The filter's state continues from chunk to chunk. It isn't
// safe for concurrent use.
type resampler struct {
	from, to int // in lowest terms
	filter   filter

	// input is the signal from the first sample that an output sample still needs. Before the first sample of the signal are zeros.
	input []float64
	// phase is the position of the next output sample after the input sample at taps/2-1, in units of 1/to.
	phase int
	odd   carry
}

// newResampler returns a resampler between two rates in Hz. Equal rates are allowed.
func newResampler(from, to int) (*resampler, error) {
	for _, rate := range []int{from, to} {
		if rate < minRate || rate > maxRate {
			return nil, fmt.Errorf("%w: %d Hz", ErrRate, rate)
		}
	}
	divisor := gcd(from, to)
	r := &resampler{from: from / divisor, to: to / divisor}
	if from != to {
		r.filter = newFilter(r.from, r.to)
		r.input = make([]float64, r.filter.taps/2-1)
	}
	return r, nil
}

// Append resamples the next chunk, which may end within a sample, and appends to dst the output that it determines. The output lags behind
// the input by half the length of the filter, 1.5 ms at 22,050 Hz, until Flush.
func (r *resampler) Append(dst, chunk []byte) []byte {
	return r.resample(dst, r.odd.join(chunk))
}

// Flush appends the remaining output at the end of the signal. The error is io.ErrUnexpectedEOF if the signal ended within a sample. The
// resampler can't be used afterwards.
func (r *resampler) Flush(dst []byte) ([]byte, error) {
	if r.filter.taps > 0 {
		// Only samples before the end of the signal are returned: those whose window needs no more than these zeros.
		dst = r.resample(dst, make([]byte, 2*(r.filter.taps/2)))
	}
	return dst, r.odd.end()
}

// resample appends the output of whole input samples.
func (r *resampler) resample(dst, samples []byte) []byte {
	if r.filter.taps == 0 { // equal rates
		return append(dst, samples...)
	}
	for ; len(samples) >= 2; samples = samples[2:] {
		r.input = append(r.input, float64(int16(binary.LittleEndian.Uint16(samples))))
	}
	start := 0
	for {
		start, r.phase = start+r.phase/r.to, r.phase%r.to
		if start+r.filter.taps > len(r.input) {
			break
		}
		dst = binary.LittleEndian.AppendUint16(dst, uint16(clip(r.filter.apply(r.input[start:], r.phase, r.to))))
		r.phase += r.from
	}
	// A filter has more taps than a step has samples, so start is at most len(r.input).
	r.input = r.input[:copy(r.input, r.input[start:])]
	return dst
}

// clip rounds a sample and limits it to 16 bits: the filter overshoots at full scale.
func clip(x float64) int16 {
	return int16(min(max(math.Round(x), math.MinInt16), math.MaxInt16))
}

// gcd returns the greatest common divisor.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
