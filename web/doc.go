// Package web holds the dashboard: its source in src, in TypeScript with Preact, and its built files in dist, which are embedded
// as they are sent, compressed by Brotli and by gzip, so that a gateway needs no Node. npm run build makes them; they are committed, and CI
// compares.
//
// The folders:
//
//   - gateway.ts is the way to the gateway, the project's own client behind it; list.ts, route.ts and store.ts hold what is shown,
//     listing.ts what live events make of the list; frames.ts has it drawn, once a frame.
//   - chat is a conversation: the log and who scrolls it, messages, the composer. chat/parts has a form for each kind of part, and
//     marks.ts there what makes names safe to read; failure.ts has the words for answers that are not whole, words.ts those for
//     the connection.
//   - voice is a conversation by voice, and reading aloud. session.ts has the wire, playout.ts the jitter buffer, gate.ts the voice
//     activity; these and resample.ts are pure. The processors run in the browser's audio thread, so each is a file. The whole folder is
//     loaded when it is first used. detector.ts asks the speech detector, which an operator can add; vad has its source and its build, which
//     is a separate module.
//   - inspector is the look inside an answer, overview what the operator sees.
//   - keys.ts knows the keys of the page and what can be done in it; palette and settings are layers over it (layers.tsx), find looks
//     through a whole conversation.
//   - markdown reads a growing text into tokens and makes elements of them.
//   - styles are plain CSS; tokens.css has the colours and sizes.
//
// Invariants
//
//   - The client's transcript is the only source of messages. A message is one element from its first word to its last: being
//     final changes its state, never its key, its component or its place.
//   - What one part breaks is shown in its place and takes nothing along.
//   - No string becomes HTML. Text of agents and people is text; links lead to the web or to this gateway; pictures come from it.
//   - The page talks to the gateway that it came from, and to nobody else. Addresses are relative.
//   - Nothing that has to be right waits for a frame or for a timer of the page.
package web
