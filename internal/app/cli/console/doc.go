// Package console is the interactive interface of leat chat on a terminal.
//
// What is complete is printed once and scrolls in the terminal's own scrollback, so that it can be searched and copied. Only the part
// below it is drawn again: the growing end of the answer, the status, and the input. The alternate screen is not used.
//
// The package has a pure core. A [model] takes keys and states of the conversation, and returns effects: commands for the gateway that
// [Run] executes. [model.nextFrame] returns the lines to print and the lines to draw. The canvas turns frames into bytes for the terminal.
//
// Two libraries were measured and left out. Glamour adds 5.3 MB to a program of 29 MB, while the parser that it is based on is in the
// program already. Bubble Tea adds 1.1 MB, and its inline renderer can neither print more lines than the screen has nor remove what
// a terminal wraps when it becomes narrower.
//
// Invariants
//
//   - Text of agents and users passes through [Clean], and again through the cells that are drawn, since Markdown has character
//     references for control characters. So only this package's own control sequences reach the terminal.
//   - No line is wider than the terminal, so a terminal never wraps one by itself until it is resized.
//   - Printed text is a prefix of the part's text. If the agent replaces it, the new text is printed again, marked as a replacement.
//   - Leaving stops no turn.
package console
