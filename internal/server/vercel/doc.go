// Package vercel serves conversations to the chat clients of Vercel's AI SDK: useChat and its default transport, of versions 5, 6 and 7 of the
// package ai. docs/outputs/vercel.md specifies what works. The program calls [Register] once, before the server starts.
//
// A request with a message runs a turn and streams its answer. A request without one resumes the answer of an unfinished turn. A stream is
// written by a [writer], which gets the operations of a turn (package answer) and sends what the client lacks.
//
// Invariants
//
//   - The answer of a turn is one message, whose id is that of the turn. Each response begins with this id, so that a client that resumes
//     replaces what it has.
//   - The SDK ends a chat if it gets a chunk that its version doesn't know. Only clients that name a newer version get chunks that version 5
//     doesn't know.
//   - The ids of chats are chosen by clients. Two principals with the same id have two conversations.
//   - A response ends while the turn waits for a person, because the SDK sends the answer with a new request. That request continues the
//     same message.
//   - A client that disconnects stops nothing, unless it asked for it.
//   - A clean end of a response is a complete answer, an error or a question. If the gateway stops, it aborts the connection instead.
package vercel
