// Package hub broadcasts live frames to the sockets that may see them. Frames such as conversation-updated, install-progress or
// terminal-output are shown when they happen and stored nowhere.
//
// A producer needs one method, and declares it in its own package:
//
//	type broadcaster interface{ Send(hub.Frame) }
//
// A socket calls [Hub.Join] once, then [Hub.Changed] and [Cursor.Next] in a loop: it has to fetch the channel before it reads, or it
// misses a frame that is sent in between.
//
// Invariants
//
//   - [Hub.Send] never blocks. All frames are in one ring that is bounded in number and bytes, so a slow socket costs no memory
//     except its cursor.
//   - If several frames have the same key, a socket that has fallen behind gets only the newest.
//   - A socket that has fallen behind by more than the ring gets the number of lost frames, so that it can reload what they changed.
//   - Access is checked when a frame is delivered, not when it is sent: a conversation that was unshared in between isn't shown.
//     A deleted conversation has no access list any more, so its frame carries the last summary.
package hub
