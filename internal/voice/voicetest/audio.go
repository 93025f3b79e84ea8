package voicetest

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/voice"
)

// SamplesPerRune is the length of a spoken character at [voice.SpeechRate]: 50 ms, about the speed of a person.
const SamplesPerRune = voice.SpeechRate / 20

const (
	// tone is the frequency of the fake speech in Hz.
	tone = 440
	// loudness is its amplitude, of 32,767.
	loudness = 20_000
)

// Speech returns what the server sends for a text, at a rate in Hz: a tone whose length is that of the text.
func Speech(text string, rate int) []byte {
	n := utf8.RuneCountInString(text) * SamplesPerRune * rate / voice.SpeechRate
	b := make([]byte, 0, 2*n)
	for i := range n {
		x := loudness * math.Sin(2*math.Pi*tone*float64(i)/float64(rate))
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(x)))
	}
	return b
}
