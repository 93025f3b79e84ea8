// Package hub hands live frames to the sockets that may see them: what is shown as it happens and kept nowhere, such as
// conversation-updated, install-progress or terminal-output.
//
// A producer needs one method, and declares it where it uses it:
//
//	type broadcaster interface{ Send(hub.Frame) }
//
// [Hub.Send] never blocks. A frame names its conversation, and goes to those who may read it; without one it goes to admins,
// or, where it says so, to everybody.
//
// Invariants
//
//   - All frames lie in one ring that is bounded in number and bytes. A socket costs its cursor in it, however slow it is.
//   - Of frames with the same key only the newest is given to a socket that has fallen behind.
//   - A socket that the ring has overtaken is told how many frames are gone, so that it reads again what they told of.
//   - Who may see a frame is asked of the gateway when it is given out, not when it is sent: what was unshared or deleted
//     meanwhile is not shown. That a conversation was deleted is told to those who could read it last, and nothing else of it.
package hub
