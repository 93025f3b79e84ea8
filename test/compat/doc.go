// Package compat has the official clients of model APIs talk to a gateway: those for Go here, those for Node in node.
//
// The same clients read recordings of their APIs beside Leat's decoders. Those of Gemini and Ollama are not there: Leat has
// no surface of theirs for them to talk to, their streams are whole JSON objects that leave a client nothing to put
// together, and google.golang.org/genai and github.com/ollama/ollama bring a cloud's libraries and a whole server along.
//
// It is a module of its own, so that none of them is among what Leat is built or tested from.
package compat
