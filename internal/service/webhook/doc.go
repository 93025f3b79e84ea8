// Package webhook tells programs elsewhere of what happened in conversations: a signed POST for each end of a turn, each
// question to a person and each message that was added, so that they can push to phones, open tickets, and so on.
//
// A delivery is a key of the journal. It is written by the conversation's writer in the commit of the event that it tells
// of, and deleted when the receiver has answered with 2xx. So whatever dies, at whatever moment, it is delivered at
// least once, always under the same id; twice where the gateway died between the answer and the delete.
//
// Invariants
//
//   - A stored delivery holds no text of its conversation. What is told beyond ids, counts and states is read from the
//     conversation when the delivery is sent; so what was deleted meanwhile is not told any more.
//   - The deliveries of one conversation to one hook are sent one after another, in the order of their events: a refused
//     one holds up what comes after it in its conversation, and nothing else.
//   - A hook holds up no other hook, no agent and no reader: nothing waits for a delivery.
//   - What is held in memory is bounded, however many deliveries wait: a window of the oldest; the rest lie in the journal.
//   - The address of a hook is the operator's, its answers are anybody's: they are bounded in size and time, redirects are
//     not followed, and private addresses are refused unless the hook allows them.
package webhook
