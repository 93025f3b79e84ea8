// Package audit keeps the log of who did what: a log of its own in the journal, whose entries are records.
//
// Invariants
//
//   - An entry is written with what it tells of or not at all: a command's goes as a key into the command's own commit
//     ([Log.Note]) and is moved to the log afterwards, in one commit that also deletes the key. So it stands there once,
//     whatever dies in between.
//   - One [Log] writes the log; all that it writes is one commit after another.
//   - No entry holds what people or agents said, nor any token: ids, names of commands, who, and what became of it.
//   - An entry loses its data in place when its conversation is deleted or its subject purged ([Log.Blank]); when, and what
//     kind of thing happened, stays.
package audit
