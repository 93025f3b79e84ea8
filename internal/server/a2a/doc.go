// Package a2a serves the agents of a gateway to clients of the Agent2Agent protocol, versions 1.0 and 0.3, over JSON-RPC: agent cards, messages
// with or without a stream, and tasks. https://a2a-protocol.org/latest/specification
//
// A context is a conversation and a task is a turn. The visible text of the turn is the one artifact that grows; each file and each piece of data
// is a separate one. A turn that waits for a person is a task in the state input-required, and the next message with the id of the task answers it.
//
// The structs of the package have the shape of 1.0. [task.forVersion] and its siblings add what 0.3 spells otherwise, so that both versions
// have one writer. Which one a client speaks is known from the names of its methods.
//
// # Invariants
//
//   - A disconnect stops nothing. Only tasks/cancel does.
//   - The text of the artifact, with its updates applied, equals the visible text of the turn, whenever a client subscribes: the first
//     event of each stream is the task with everything so far.
//   - The ids of contexts that clients choose are scoped by principal. Tasks of others look as if they didn't exist.
//   - A message that is sent again, with the same id, has the same task. It is never answered twice.
//   - Wherever a stream is interrupted, a client that subscribes again has the same task at the end, and so has one that gets the task afterwards.
//   - A stream ends with one status, and nothing follows the last chunk of the text but that and other artifacts.
//   - What isn't offered gets the error that the protocol has for it. An error of a method that streams is an event.
package a2a
