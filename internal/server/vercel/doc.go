// Package vercel serves conversations to the chat clients of Vercel's AI SDK: useChat and its default transport, of versions 5, 6 and 7 of the
// package ai. docs/outputs/vercel.md specifies what works. The program calls [Register] once, before the server starts.
//
// A request with a message runs a turn and streams its answer. A request without one resumes the answer of an unfinished turn. A stream is
// written by a [writer], which gets the operations of a turn (package answer) and sends what the client lacks.
//
// # Invariants
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
//
// # What the SDK does
//
// These facts were found with the clients themselves, and test/compat holds the package against them.
//
//   - A request doesn't name the version, and contains all messages of the chat.
//   - The body of an error is shown as it is, also if it is JSON. So errors are one sentence.
//   - A stream that ends cleanly is a success, even without a finish. Only an aborted connection or an error chunk is a failure, and only an
//     aborted connection is resumed without the user.
//   - The start chunk of a resume empties the message that has its id. In version 5 this is true only for a new page: a page that resumes after a
//     lost connection adds the replay to what it had. The gateway can't tell the two apart.
//   - The same chunk in the response to an answer doesn't empty it: what follows is added to the message, and texts of earlier responses can't
//     grow any more.
//   - The input of a call is looked up in the current step, its output in the whole message. An input in a later step makes a second call.
//   - Answers are sent by themselves, if the page wants that, as soon as each call of the last step has an answer or output. So requests that are
//     open at the same time must be in one step, and a response that follows an answer must begin with a step. Otherwise the SDK would send the
//     same answer again and again.
//   - A call without the mark providerExecuted is run by the page, also during a resume.
//   - The keys __proto__ and constructor in a chunk end the chat. Values that contain them are sent as texts.
//   - Versions 5 and 6 append the path of a resume to the page's api, even if that has a query.
//
// # Numbers
//
// The SDK has no cursor. A resume gets the answer from its beginning, as few and large chunks. An answer to a request continues after the request,
// whose number is found by its id in the client's message: each response that pauses ends exactly at the newest request that it contains.
package vercel
