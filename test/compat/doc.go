// Package compat tests a gateway with the official clients of model APIs: the Go clients here, the Node clients in the folder node.
// The folder also has the tests with Vercel's AI SDK, in three versions, with AG-UI, and with the client and the conformance suite of Durable
// Streams. The clients of Agent2Agent are here too: for Go, for Node, and for Python in the folder python. The SDK of the Model Context
// Protocol for Go runs here as well.
//
// The same clients read the recordings that Leat's decoders are tested with, and both must find the same text. Gemini and Ollama are left
// out: Leat doesn't offer their APIs, their streams consist of complete JSON objects that a client needn't assemble, and their modules
// depend on a cloud's libraries and on a whole server.
//
// The package is a separate module, so that Leat doesn't depend on the clients.
package compat
