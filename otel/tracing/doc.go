// Package tracing tells OpenTelemetry of a gateway's turns.
//
// A turn is the span "leat.turn", which continues the trace of the request that asked for it. Below it are
//
//   - "leat.upstream": the agent at work. What it calls continues from here, by agent.TraceParent.
//   - "leat.first_text": from the turn's start until readers could see its first text.
//   - "leat.commit": from handing events to the journal to their being shown. A turn may have thousands, so only the
//     first ones and slow ones are spans; the turn's span has the count of all, and the longest.
//
// Invariants
//
//   - No span holds text of a conversation: ids, names of agents and models, numbers, and codes of errors only.
//   - It is told of turns by the conversation's writer, and never makes it wait: spans are exported in batches, and
//     dropped where the collector does not keep up.
package tracing
