// Package channeltest tests channels that stream: what holds for every platform, whatever fails. A platform's package calls [Run] with
// its fake server.
//
// Time is virtual, so a fake is reached without sockets.
//
// # What is tested
//
// Each test plays a [Story], the events of one turn, into a channel, and then looks at what a person sees in the chat. The tests know
// nothing of a platform's requests: whether a text is a draft, an edited message or a native stream is the channel's affair.
//
//   - A long answer arrives whole and in order, in as many messages as the platform needs.
//   - Tool calls are visible while they run, with the end of their output, and leave no trace. On a quiet platform nothing is shown of
//     a running turn but its questions.
//   - A question stays in the chat exactly once, before the text that follows the answer to it.
//   - An error is shown after the text that was written before it. A part of an answer is never presented as the whole.
//   - A retracted text disappears from all messages that showed it. A removed turn leaves nothing.
//   - No request is made during a penalty, and the answer arrives when it is over. It also arrives after an outage.
//   - A process that ends during any of the first 30 requests is continued by the next one, whether that request took effect or not.
//   - In a storm of random faults over all chats every answer arrives exactly once, or at most once and with channel.ErrUnknownOutcome
//     if the platform has no idempotency keys.
//
// After each test the fake server must have no violations, so a channel that reaches its goal by ill-behaved requests fails as well.
//
// # Faults
//
// The tests ask for faults by kind only; a platform translates them into its own answers. A request that is lost before its effect and
// one that is lost after it look the same to the channel, and both must happen: a channel that always repeats would double messages in
// the second case, and one that never repeats would lose them in the first.
//
// # Time
//
// Each test runs in a bubble of testing/synctest, in which time advances only when all goroutines wait. So a penalty of minutes takes no
// time, and a test can demand exact waits. A fake must not use sockets there, since a goroutine that waits for a socket never counts as
// waiting; it is called as an http.RoundTripper. A goroutine that remains after a test makes it fail, which shows that a channel ends
// all of its work.
package channeltest
