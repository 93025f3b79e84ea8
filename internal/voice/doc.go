// Package voice speaks an answer while it is written, and lets a person interrupt it.
//
// All audio is signed 16-bit little-endian mono PCM: 24 kHz from the gateway to the person, 16 kHz from the person to the gateway.
package voice
