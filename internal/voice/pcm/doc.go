// Package pcm converts audio: it changes the sample rate, reads and writes WAV headers, and joins samples that were split over two chunks.
//
// Samples are signed 16-bit little-endian mono PCM. A [Reader] does all of it for a stream: it reads audio at one rate, in pieces of any
// length, and returns whole samples at another rate.
//
// Invariants
//
//   - The output depends only on the input, never on the chunks in which the input arrives.
//   - A resampler adds no delay and loses no tail: n samples become n × to ÷ from, rounded up.
//   - The sizes in a WAV header are used only if they are plausible. Programs that write to a pipe don't know them, and fill in a large
//     number or 0.
//   - An input that ends within a sample is an error, because it was interrupted.
package pcm
