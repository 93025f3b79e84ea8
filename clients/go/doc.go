// Package leat is a client of a Leat gateway: it lists and creates conversations, sends commands, and follows conversations live. The
// protocol is specified in docs/protocol.md.
//
//	c := &leat.Client{URL: "http://127.0.0.1:31337"}
//	conv, err := c.Create(ctx, leat.CreateOptions{})
//	...
//	ack, err := c.Send(ctx, conv.ID, "What is 12 * 7?")
//	...
//	err = c.Follow(ctx, conv.ID, func(u leat.Update) error {
//		fmt.Println(u.Transcript.Visible(ack.Turn))
//		if turn := u.Transcript.Turn(ack.Turn); turn != nil && !turn.Unfinished() {
//			return leat.ErrStop
//		}
//		return nil
//	})
//
// [Client.Follow] delivers a conversation's state, [Client.Send] and the other methods are single requests. Programs that must not lose a
// message when they stop use an [Outbox] instead of Send. [Live] receives what isn't part of a conversation, such as the agent's status.
// A Client and a Live may be used by several goroutines. A callback blocks the call that it was passed
// to, except the Outbox's, which may run on several goroutines at the same time.
//
// Invariants
//
//   - Follow delivers every state once and in order, across lost connections and restarts of the gateway. If it can't resume from its cursor,
//     it fetches a snapshot. It returns only if its context is done, the callback returns an error, or an error can't be solved by a retry.
//   - After a disconnect it waits 0.5 s before the first retry. The wait grows by half each time up to 10 s, is 30 s after 15 retries,
//     and is shortened by a random amount of up to half. The waits start over when the gateway has accepted the token. After missed
//     heartbeats it retries at once.
//   - An Outbox sends each message until the gateway acknowledges or rejects it, if necessary in the next run of the program.
//   - Live delivers each signal once and in order, across disconnects, or reports a gap. It buffers up to 32 control frames
//     until it is connected, and sends the active conversation again on every connection.
//   - Every command has an idempotency key, so that a retry after a lost response takes effect once.
//   - Errors of the gateway are an [*Error], which reports whether a retry may succeed.
package leat
