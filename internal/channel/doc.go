// Package channel connects chats on chat platforms with conversations: a message in a chat runs a turn, and the answer appears in
// the chat while it is written. Each platform has a package below this one, which implements [Channel], and [StreamChannel] if
// the platform can show an answer that grows.
//
// A message of a person takes this way:
//
//	Channel.Run → Inbox.Receive (store, then queue) → MessageBus → Pipeline: may the person talk? a command? → gateway
//
// and the answer this one:
//
//	commit → Pipeline.Committed → one goroutine for the chat reads the feed → SendStream of the channel → final message
//
// Order of calls: [New], [Pipeline.Add] for each channel, [Pipeline.Start], [Pipeline.Shutdown]. The pipeline is a watcher of the
// gateway.
//
// Invariants
//
//   - A message of a person is stored before the platform gets its confirmation, and handled once: it has the platform's id as its key.
//   - A chat waits for nothing but itself. Each has a bounded queue, and a goroutine only while there is something to deliver.
//   - The pipeline doesn't read the stream of a turn: SendStream takes events when it is ready for them, and what is committed meanwhile is
//     merged. So a slow platform costs no memory and delays no agent.
//   - The turns of a chat are delivered one after another, each until it has ended. How far that has progressed is stored in the
//     conversation's log, so a restart continues there.
//   - A delivery that failed for good is recorded ([EventStreamFailed]) and not replaced by a message: a part of the answer may be visible.
//   - Only the people of the configuration and those whom an operator admitted may talk to a channel.
package channel
