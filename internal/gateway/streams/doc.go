// Package streams stores the streams that users create by the Durable Streams protocol: logs of bytes or of JSON
// values, which only grow until they are closed or deleted. internal/server/durable serves them.
// docs/outputs/durable-streams.md specifies what clients get.
//
// # Order of calls
//
// [New] makes a [Store]. Its methods work from then on. [Store.Run] deletes expired streams, compacts logs and
// attends to subscriptions until its context ends. It must run while the store is in use.
//
// # Storage
//
// Each stream is a log of the journal whose id begins with [journal.StreamPrefix], and each append is one event of
// it. So streams share the commits, the encryption, the damage checks, the backups and the counted bytes of
// conversations, without a second store. The log is neither a conversation nor one of the gateway's own logs. What
// else belongs to a stream is in keys that the log owns: its description, the producers, and the marks of its forks.
// A deletion of the log removes them.
//
// A fork has a separate log for what it adds, and the list of the logs that have the rest. An append within which a
// fork begins is copied up to that place.
//
// # Positions
//
// A position is the number of appends before it, and depends on the log alone. A fork continues the positions of its
// source. After a restore from a backup, the journal leaves a gap before the next seq, so no position is used twice.
// An offset also has a tag, which differs between two streams that had the same path one after another.
//
// # Subscriptions
//
// A subscription stores, for each of its streams, the position up to which its workers have processed it. Whether a
// worker has to wake up follows from these positions and the ends of the streams, so nothing is missed when the
// process is killed. Run looks at the subscriptions of a user after each append of that user, and when a lease ends
// or a webhook has to be repeated.
//
// # Errors
//
// [gateway.ErrNotFound] means that a stream doesn't exist, has expired or belongs to another user, and [ErrGone] that it was
// deleted and has forks. A [gateway.Rejection] says what is wrong with a request, or which limit or legal hold it met.
// [gateway.ErrUnavailable] means that the result of a commit is unknown or that the gateway stops: a producer repeats its request
// then. Subscriptions have [SubscriptionError] with the codes of the protocol.
//
// # Costs
//
// An append is one commit, which it shares with other appends and with turns. Appends to one stream wait for each other, those to
// different ones don't. A read takes one query for each log that it touches. A stream in memory takes about a kilobyte, and readers
// that wait take a goroutine each. A deletion overwrites what the stream had and truncates the write-ahead log, so it takes some
// milliseconds, and a sweep leaves pauses between deletions.
//
// # Invariants
//
//   - An append is acknowledged after the commit that has it, the producer's state and the close of the stream.
//   - Only the holder of a stream's lock changes the stream. Locks of two streams are taken in the order of their
//     keys.
//   - If the result of a commit is unknown, the state in memory is dropped and read again, before anybody gets an
//     answer from it.
//   - A stream expires at the time that clients were promised or later, and never earlier.
//   - A deleted stream has its data as long as a fork needs it. No later.
//   - Users have different streams with the same path. A user's streams are erased with the user, and a legal hold on
//     the user keeps them.
//   - Nothing here grows without a limit: streams, subscriptions, their streams, producers, paths and appends have
//     constants, and what is in memory can be read again.
package streams
