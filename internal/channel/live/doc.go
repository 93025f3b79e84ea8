// Package live delivers turns to chats on platforms whose messages can be edited. It decides what a chat shows of a running turn and
// when, and brings the final answer into the chat whatever fails. A platform implements [Chat] with single requests, and the optional
// interfaces [DraftChat], [FileChat] and [FindChat].
//
//	bot := live.NewBot(name, rules, botGap, log)           // once
//	err := bot.Deliver(ctx, place, chat, metadata, events) // SendStream of the channel
//	err := bot.Send(ctx, place, chat, message)             // Send of the channel
//
// While a turn runs, a chat sees "typing", then the growing text (as a draft, or as messages that are edited), a status card if there
// are tool calls, and questions with buttons. At the end the growing text becomes the answer in place, or the answer is sent as new
// messages and what showed the running turn is deleted ([Rules.InPlace]).
//
// Invariants
//
//   - One request for a chat is in flight at a time, none while a penalty of the server lasts, and each shows the newest state.
//   - The intention to create a message is stored before the request, and its id after it. If the outcome of a request is unknown, it is
//     repeated with the same key where the platform recognises that. Elsewhere a message of the answer is not sent again, and the
//     delivery ends with channel.ErrUnknownOutcome; a lost message of the running turn is looked for at the end.
//   - The messages that show the running turn disappear only when the answer was sent. If it can't be sent, they stay.
//   - If all chats of a bot together are at its limit, answers go first and live updates wait.
//
// # Order of requests
//
// A delivery is one loop. Each round asks the view which action is the most urgent and when it is due, waits for that time or for the
// next event, and then makes at most one request. While a request is in flight, events wait in the channel; afterwards all of them are
// applied before the next request is made, so a slow platform gets fewer requests and never an outdated text. The order of urgency is:
// a question that the turn waits for, the reaction, and then what is due first of the buttons to remove, the text and the card.
// "Typing" is shown only while there is neither a text nor a card.
//
// The gate of a place lets the request pass. It has three limits: one request at a time, the place's own gap between messages and
// edits, and the penalty of the server. In front of it is the limit of the bot, which all places share. Live updates don't queue
// there: if the queue is longer than half a second, they are skipped, because the answers of other chats are worth more than
// another frame of this one.
//
// # What is stored
//
// The state of a delivery is stored with [channel.StreamMetadata.Save]:
//
//   - before a message is created, with its kind, and after that with its id. A process that ends between the two leaves the kind behind,
//     from which the next delivery knows that a message may exist;
//   - after each message of the answer and each file, so that none is sent again;
//   - when a question is sent, because the buttons are removed once the question was answered, also by a later process.
//
// What the messages show is not stored. A delivery that continues doesn't know it, edits each message once, and so brings it up to date.
//
// # Which errors repeat a request
//
//	error              live update             message of the answer
//	Penalty            after the wait          after the wait
//	ErrRepeat          at once                 at once
//	ErrUnsent          in the next round       with growing waits until ctx ends
//	ErrUnknown         in the next round       only if the platform is idempotent
//	ErrMissing         a new message           a new message
//	ErrUnreachable     ends the delivery       ends the delivery
//	another refusal    in the next round       ends the delivery
//
// # How to add a platform
//
// A channel with this engine needs a client of the platform's API, a translation of what people do into messages of the pipeline, and a
// [Chat]. The engine has the loop, the limits, the order of requests and the state. So a chat should be small:
//
//   - Each method makes one request. It neither waits nor repeats: the gate does that, and a second wait would hide a penalty from it.
//   - An error is translated by its meaning for the next request. The difference between a request that was never sent and one without
//     an answer is important: only a failure to connect proves that the server has not seen the request.
//   - If the platform refuses something that a message can do without, such as a reply or formatting, the chat remembers that and returns
//     ErrRepeat. The next request then leaves it out. It must be different from the first one: after some repetitions the engine gives up.
//   - An edit that changes nothing succeeds, whatever the platform answers to it.
//   - A post with the key of an earlier one returns the earlier message if the platform permits that. Rules.Idempotent promises it.
//   - A chat is used by one goroutine and belongs to one delivery, so it may remember what its messages show.
//
// The gap of a place should be a little longer than the platform's limit. A refusal costs a wait of seconds, and some platforms lengthen
// it with each repetition.
//
// A new platform is complete when the tests of channeltest pass with a fake that enforces the platform's documented rules, and an
// independent client library of the platform works with that fake: otherwise the channel and the fake could share one misunderstanding.
//
// # Limits of what is promised
//
// The engine can't distinguish a person who deletes a message from a platform that loses it. In both cases a message of a running turn is
// created again, and a message of a complete answer is not.
//
// On platforms without idempotency keys a message of the answer whose request got no answer may be missing. The delivery says so, and the
// pipeline informs the person. A second copy would be the alternative, and a person can't see that it is one.
//
// A chat that is edited by two processes with the same token shows whatever arrived last. The lock of the data folder prevents that within
// one gateway only.
package live
