// Package ui is the first page: a conversation list, a log that grows live, an input. It is plain HTML, CSS and JavaScript
// modules, embedded as they are written; nothing builds them.
//
// Invariants
//
//   - What a conversation says becomes text nodes, never markup; the page's policy allows no script but its own files.
//   - The page keeps the reader's rules of docs/protocol.md: static/transcript.js is the fold of package transcript, and a
//     test holds the two against each other.
//   - The token goes to the gateway once, for a cookie that scripts can't read, and is kept nowhere.
package ui
