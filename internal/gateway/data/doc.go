// Package data implements retention, purges, exports and imports of the data that a gateway stores about people.
//
// [Retention] deletes old conversations, and [Purger] everything about one subject. The app runs each in a goroutine until the gateway
// ends. [Exporter] and [Importer] serve single requests.
//
// Data outside conversations is in the journal's keys. A package that stores such data registers a [Collection], or a purge will
// miss it.
//
// Invariants
//
//   - Nothing that is under a legal hold is removed.
//   - Conversations are deleted through the gateway, whose writer ends their turns and notifies readers.
//   - Interrupted work is resumed: retention by its next sweep, and a purge by [Purger.Run], after a restart too.
//   - An export is streamed in bounded memory. Each conversation in it is consistent as of one moment, the export as a whole isn't.
//   - An import creates a conversation completely or not at all, and importing it again changes nothing.
package data
