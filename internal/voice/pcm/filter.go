package pcm

import "math"

const (
	// halfTaps is the number of taps on each side of an output sample if the rate doesn't fall. 32 make the band between passed and
	// suppressed frequencies 9 % of the sample rate wide.
	halfTaps = 32
	// beta is the shape of the Kaiser window. 9 suppresses other frequencies by about 90 dB, close to the noise of 16 bits.
	beta = 9.0
	// passband is the highest passed frequency as a share of half the lower rate. The filter's edge is centered on it, so that it ends
	// close to half the rate.
	passband = 0.92
	// maxPhases limits the table of a filter. Ratios with more phases interpolate between two of these, with an error of about -106 dB.
	maxPhases = 512
)

// filter is a windowed sinc, sampled at phases fractions of an input sample.
type filter struct {
	taps   int // coefficients of a phase; even
	phases int
	// table has phases+1 rows of taps coefficients. The last row is the first one of the next input sample, for the interpolation.
	table []float64
}

// newFilter returns the filter for a ratio that is reduced to lowest terms.
func newFilter(from, to int) filter {
	// If the rate falls, the filter becomes longer in the same proportion, because it has to suppress lower frequencies.
	stretch := max(1, float64(from)/float64(to))
	half := int(math.Ceil(halfTaps * stretch))
	f := filter{taps: 2 * half, phases: min(to, maxPhases)}
	f.table = make([]float64, (f.phases+1)*f.taps)
	for p := range f.phases + 1 {
		row := f.table[p*f.taps : (p+1)*f.taps]
		fraction := float64(p) / float64(f.phases)
		sum := 0.0
		for i := range row {
			x := float64(i-half+1) - fraction // distance from the output sample, in input samples
			row[i] = sinc(x*passband/stretch) * kaiser(x/float64(half))
			sum += row[i]
		}
		for i := range row { // so that a constant signal keeps its level in each phase
			row[i] /= sum
		}
	}
	return f
}

// apply returns the output sample at numerator/denominator after the input sample window[taps/2-1].
func (f filter) apply(window []float64, numerator, denominator int) float64 {
	if f.phases == denominator {
		return dot(f.table[numerator*f.taps:], window[:f.taps])
	}
	position := float64(numerator) * float64(f.phases) / float64(denominator)
	p := int(position)
	share := position - float64(p)
	low := dot(f.table[p*f.taps:], window[:f.taps])
	high := dot(f.table[(p+1)*f.taps:], window[:f.taps])
	return low + share*(high-low)
}

// dot multiplies window with the coefficients at the beginning of row. Four sums are independent, so the processor computes them at once.
func dot(row, window []float64) float64 {
	row = row[:len(window)]
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(window); i += 4 {
		a += row[i] * window[i]
		b += row[i+1] * window[i+1]
		c += row[i+2] * window[i+2]
		d += row[i+3] * window[i+3]
	}
	for ; i < len(window); i++ {
		a += row[i] * window[i]
	}
	return (a + b) + (c + d)
}

// sinc returns sin(πx) ÷ πx.
func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser returns the window at x, which is between -1 and 1.
func kaiser(x float64) float64 {
	if x < -1 || x > 1 {
		return 0
	}
	return bessel(beta * math.Sqrt(1-x*x)) // its level is normalized by newFilter
}

// bessel returns the modified Bessel function of the first kind and order 0.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= x * x / (4 * k * k)
		sum += term
	}
	return sum
}
