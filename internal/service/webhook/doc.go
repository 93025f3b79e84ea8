// Package webhook notifies other programs of events in conversations: it sends a signed POST for each end of a turn, each
// question to a person and each added message, so that they can send push notifications, open tickets, and so on.
//
// # Order of calls
//
// [New] before the gateway is created, [Hooks.Start] before it accepts commands, [Hooks.Close] after it has stopped. For each
// commit a conversation's writer calls [Hooks.Entries], adds the returned keys to the commit, and calls [Hooks.Finish] with the
// result.
//
// # Delivery
//
// A delivery is a key of the journal. It is written in the commit of its event and deleted when the receiver has answered with
// 2xx. So each event is delivered at least once, always under the same id, wherever a crash occurs. It is delivered twice if
// the gateway crashes between the answer and the deletion. After 24 hours a delivery is given up.
//
// # Invariants
//
//   - A stored delivery contains no text. Text is read from the conversation when the delivery is sent, so text that was deleted in
//     between is never sent.
//   - The deliveries of one conversation to one hook are sent one at a time, in the order of their events. A refused delivery delays
//     later ones of its conversation, but no others.
//   - A hook delays no other hook, agent or reader.
//   - Memory is bounded however many deliveries wait: a window holds the oldest, and the others stay in the journal.
//   - A hook's URL is trusted configuration, but its answers aren't. They are limited in size and time, redirects aren't followed, and
//     private addresses are refused unless the hook permits them.
package webhook
