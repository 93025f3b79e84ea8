// Package mcp makes the agents of a gateway tools of programs that speak the Model Context Protocol over standard input and output, such as
// desktop assistants and coding agents. It is a client of the gateway. https://modelcontextprotocol.io/specification
//
// # Invariants
//
//   - Every tool returns structured content that fits its output schema, and the same as text for hosts that show only text.
//   - A failure of the gateway or of an agent is a result with isError, which the calling model reads, and never an error of the protocol.
//   - A call that is canceled, or whose host has ended, leaves its turn running, unless the call has asked for a stop.
//   - Nothing but messages of the protocol is written to the output.
package mcp
