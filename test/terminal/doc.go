// Package terminal tests leat chat as a user sees it: the program runs in a pseudo-terminal against a real gateway, and a terminal
// emulator interprets what it writes. The emulator makes it a separate module.
package terminal
