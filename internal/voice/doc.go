// Package voice speaks an answer while it is written, and lets a person interrupt it.
//
// All audio is signed 16-bit little-endian mono PCM: 24 kHz from the gateway to the person, 16 kHz from the person to the gateway.
//
// # The path of a sentence
//
// A [Session] gets the visible text of each turn as it grows ([Session.Update]), and divides it into sentences with a
// segmenter. Each sentence becomes a
// clip: an [Engine] speaks it while earlier clips are sent. [Session.Run] writes PCM, flushes and frames to the connection of one
// person. A [Microphone] works in the other direction: what the person says becomes text. Agent, speech and microphone don't end each
// other: an interruption ends the clips, and the caller decides about the turn.
//
// # Generations
//
// A generation is the audio between two flushes. Samples, the reports of what was played, and captions are counted in it.
//
// Invariants
//
//   - One goroutine, that of [Session.Run], writes to the connection. So PCM, flushes and frames have one order.
//   - Each interruption begins a generation and writes exactly one flush. After the flush there is no PCM, caption or end of an earlier
//     generation.
//   - At most 2 s of audio is sent ahead of real time, so an interruption is nearly exact and the client's queue stays small.
//   - A frame of PCM has an even length and at most 4,800 bytes.
//   - A sentence is spoken at most once. Text that was replaced before its first sample was sent is not spoken.
//   - A session calls its engine for a bounded number of sentences at a time, and buffers a bounded amount of audio.
//   - Every goroutine of a session has ended when Run returns.
package voice
