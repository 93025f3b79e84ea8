// Package tracing exports the turns of a gateway to OpenTelemetry.
//
// A turn is the span "leat.turn", which continues the trace of the request that started it. Its child spans are
//
//   - "leat.upstream": the agent's work. Requests of the agent continue this span with agent.TraceParent.
//   - "leat.first_text": from the start of the turn until readers can see its first text.
//   - "leat.commit": from passing events to the journal until readers can see them. A turn may have thousands of commits,
//     so only the first ones and slow ones are spans. The turn's span has their number and the longest duration.
//
// Invariants
//
//   - No span contains text of a conversation: only ids, names of agents and models, numbers, and codes of errors.
//   - The conversation's writer calls the tracer and never waits for it: spans are exported in batches, and are dropped
//     if the collector is too slow.
package tracing
