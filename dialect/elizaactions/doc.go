// Package elizaactions decodes the NDJSON by which an Eliza runtime, or any program that speaks its callback contract,
// brings its answer in. The dialect's name is eliza-actions.
//
//	{"type":"chunk","text":"…"}                                   what the model says
//	{"type":"callback","text":"…","source":"…","merge":"replace"}  a status; merge "append" extends it, all else replaces
//	{"type":"done"}                                                the turn is complete
//	{"type":"error","message":"…","code":"…","retryable":false}    the turn has failed; code and retryable are optional
//
// Invariants
//
//   - What text and callbacks do to each other is [github.com/leat-dev/leat/dialect.Segments], and nothing else.
//   - A stream without done or error was cut short. What is held back is said however it ends.
//   - Chunks are deltas of one text: a character may be split over two of them.
package elizaactions
