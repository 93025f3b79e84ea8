// Package audit records the operations that users, operators and the gateway itself performed or were refused. The entries are
// records in a separate log, the conversation "$audit" of the journal, so they survive a restart, a restore and a delete of
// the conversation they concern.
//
// # Order of calls
//
// [New], then [Log.Open] before the gateway accepts commands, then [Log.Run] in a goroutine. A command calls [Log.Note], adds
// the returned key to its own commit, and calls [Log.Wake] after the commit. An operation without a commit, such as
// an export, calls [Log.Record]. Readers call [Log.Read] in a loop and wait for [Log.Changed] between the calls.
//
// # Invariants
//
//   - An entry is stored if and only if its operation is. Note stores the entry as a key in the commit of the command. Run later
//     moves it to the log in one commit that also deletes the key, so a crash at any point neither loses nor duplicates it.
//   - Only one [Log] may write the audit log of a journal. Its commits are serialized, so that the expected head is always known.
//   - Entries contain ids, names of commands, the actor and the result. They never contain text of a conversation or a token.
//   - When a conversation is deleted or a subject purged ([Log.Blank]), the entries lose their data in place. Their time and action
//     remain, so the log has no gaps.
package audit
