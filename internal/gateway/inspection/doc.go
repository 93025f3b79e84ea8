// Package inspection shows how the bytes of a turn became what readers saw, and takes reports of readers that saw something else.
//
// Three sources are combined: the capture of the bytes that the turn exchanged with its agent, the log, and the trace of when each event
// was received and committed. [Inspector.Explain] decodes the captured frames again and compares the result with the log.
// [Inspector.WriteRecording] and [Inspector.WriteLogRecording] write a turn as a recording that can be replayed, from the capture
// and from the log.
//
// Invariants
//
//   - Nothing here changes a conversation.
//   - The capture shows what the gateway sent to the agent too, so only principals with [gateway.ActionInspect] see it. The trace and
//     the recording of the log hold only what readers of the conversation can see.
//   - Secrets of agents are masked in everything that comes from the capture, and in the text that it is compared with.
//   - Captures and traces are removed earlier than the log. Methods then return [gateway.ErrNotKept] or [gateway.ErrNotFound], or do
//     with the log alone.
package inspection
