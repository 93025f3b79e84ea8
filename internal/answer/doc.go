// Package answer turns the events of one turn into the operations of one answer. Outputs for clients of other protocols are writers on it:
// they decide how an operation is spelled, and nothing else.
//
// An [Answer] gets the events of a conversation in the order of its log and returns an [Op] for each one that changes the turn. Messages
// follow each other in one answer, as they did in the turn. A text grows by appends that begin where the client's text ends. A replace that
// takes text back is a separate operation. A wait doesn't end an answer: a format whose response ends there sends the rest in the next
// response, as a client that resumes after the number of the wait.
//
// An [Appender] is for formats without an operation that takes text back. It buffers text that may still change.
//
// # Numbers
//
// The number of an operation is the seq of its event minus that of the turn's first event. So it depends on the log alone and not on what was
// sent before. Numbers have holes, and increase. A log may merge several appends to a text, and these then have the number of the last one. A
// reader that has received everything up to a number resumes after it, and of a merged append gets only what it lacks.
//
// # Invariants
//
//   - Folded in their order, the operations result in the texts of the turn's transcript.
//   - The operations after a number complete what a client has that received those up to the number, whatever was merged in either reading.
//     The same holds for the pieces of an Appender, unless it reports a contradiction.
//   - Only package transcript decides what an event does. This package compares texts only to find out how much of a replaced text remains.
//   - The package is pure.
package answer
