// Package files brings files in and serves them: the pictures, sounds and documents of a conversation, which the gateway keeps.
// Who may read a conversation may read its files, and who may write in it may bring some. Large ones come by uploads that can be
// gone on with, and where there is a workspace, files lie and are named there by paths.
//
// Invariants
//
//   - A browser shows by itself only what can't hold a script; anything else it saves. No type is guessed, and nothing that is
//     served can run in the site's name.
//   - A conversation's file never changes: its address is good for ever, and a repeat costs nothing. One of the workspace is looked
//     at anew each time.
//   - An upload is its maker's, and so is what it comes to in the workspace; to anybody else neither exists.
package files
