// Package note converts between speech and voice notes, the audio messages of chat apps.
//
// A voice note is a file in Ogg Opus (RFC 7845). The programs opusenc and opusdec of opus-tools convert it, each in a process of its own:
// the notes come from strangers, and a fault in a decoder must not end the gateway.
//
// Invariants
//
//   - A conversion has limits of size and time, and leaves no process behind.
//   - What is said of an answer is what [sentence.Segmenter] says of it, so a note sounds like a voice conversation.
package note
