// Package capture keeps, for a while, the bytes that turns exchanged with what answers them: a ring of files, of which the oldest
// go first. It is for looking into an answer that came out garbled, after the fact.
//
// Invariants
//
//   - Who speaks is never held up, and an error of the disk is nobody's but the log's: what can't be kept is counted and
//     noted in its place.
//   - The files never take more than the size, nor are they kept longer than asked, but for one file's share of either.
//   - What a kill leaves is read up to the last whole record.
//   - What is secret is masked before it is written: tokens and keys that are known by their form, and the values that the
//     agent's configuration names, also where one is cut in two by the pieces of a body.
//   - After Forget nothing of a conversation is in any file, nor is anything of its turns written later.
package capture
