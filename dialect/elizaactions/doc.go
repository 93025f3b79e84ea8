// Package elizaactions decodes the NDJSON in which an Eliza runtime, or any program that follows its callback contract, sends its answer.
// The dialect's name is eliza-actions. docs/agents.md describes it for authors of agents.
//
//	{"type":"chunk","text":"…"}                                   a delta of the model's text
//	{"type":"callback","text":"…","source":"…","merge":"replace"}  a status; merge "append" extends it, any other value replaces it
//	{"type":"done"}                                                the turn is complete
//	{"type":"error","message":"…","code":"…","retryable":false}    the turn has failed; code and retryable are optional
//
// The source of a callback is ignored, because readers see one status whatever action it comes from. Other types are counted as unknown.
//
// Invariants
//
//   - [github.com/leat-dev/leat/dialect.Segments] alone decides how text and callbacks combine.
//   - A stream without done or error was cut short. Buffered text is emitted in both cases.
//   - Chunks are deltas of one text: a character may be split between two of them.
package elizaactions
