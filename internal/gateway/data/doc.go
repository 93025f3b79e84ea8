// Package data keeps, deletes, exports and imports what a gateway stores of people.
//
// Invariants
//
//   - Nothing that a legal hold keeps is removed, and nothing is removed but through the gateway, whose owners end turns
//     and tell readers.
//   - Whatever is cut off half-way goes on: retention by its next sweep, a purge at the next start.
//   - An export is streamed in bounded memory. What it says of one conversation is of one moment.
//   - An import writes a conversation whole or not at all, and twice does what once does.
package data
