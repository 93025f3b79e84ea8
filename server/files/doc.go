// Package files brings files in and serves them: the pictures, sounds and documents of a conversation, which the gateway keeps.
// Who may read a conversation may read its files, and who may write in it may bring some.
//
// Invariants
//
//   - A browser shows by itself only what can't hold a script; anything else it saves. No type is guessed, and nothing that is
//     served can run in the site's name.
//   - A file never changes: its address is good for ever, and a repeat costs nothing.
package files
