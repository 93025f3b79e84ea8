// Package leat is a client of a Leat gateway: it lists and makes conversations, sends commands, and follows a
// conversation live.
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
// Invariants
//
//   - [Client.Follow] shows every state once, in order, across lost connections and restarts of the gateway; where it can't
//     go on from its cursor, it takes a snapshot. It ends only by its context, its function, or an error that no repeat mends.
//   - After a cut it waits 0.5 s, half as long again each time up to 10 s, and after 15 tries 30 s, each by chance up to half as
//     long again; from the beginning when the gateway has taken its token. After missed heartbeats it tries at once.
//   - What an [Outbox] has taken is sent until the gateway acknowledges or refuses it, also by the next run of the program.
//   - [Live] shows each signal once, in order, also across cuts, or says what is gone. Of its control frames 32 wait for a connection;
//     which conversation is looked at is told anew on each.
//   - A command carries a key, so that a repeat after a lost answer takes effect once.
//   - Errors of the gateway are an [*Error], which says whether a repeat may help.
package leat
