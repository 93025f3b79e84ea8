// Package ui serves the dashboard: the files that package web holds, under a policy that lets them do nothing but talk to their gateway.
//
// Invariants
//
//   - What a conversation says never becomes markup: the page's policy allows no script but its own files, and no string as HTML.
//   - The speech detector may compile WebAssembly, so it has a frame with its own policy, without an origin and without connections.
//     So do diagrams and the HTML that tools return. The page may have frames of the gateway only.
//   - The service worker shows notifications. It sees no request of the page and stores nothing.
//   - The page keeps the reader's rules of docs/protocol.md: the fold of clients/ts, which it is built with, is held against package
//     transcript by a test here (testdata/transcript.js is what the compiler makes of it).
//   - The token goes to the gateway once, for a cookie that scripts can't read, and is kept nowhere.
package ui
