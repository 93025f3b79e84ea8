// Package matrix is a strict fake of a Matrix homeserver (spec.matrix.org, client-server API) for tests of bots. It has one account,
// that of the bot; people act by methods of the [Server].
//
//	fake := matrix.New(matrix.Options{Token: "secret"})
//	server := httptest.NewServer(fake)
//	// … a bot that uses server.URL as its homeserver …
//	ann := fake.Direct("@ann:matrix.test", "Ann")
//	fake.Say(ann, "hello")
//	messages := fake.Messages(ann.Room)
//
// The fake refuses what Dendrite and Synapse refuse, with the same errors, and makes faults on demand ([Server.Fail]). Requests that a
// homeserver tolerates but a bot should not make are collected by [Server.Violations]: a request during a penalty, two requests for
// one message at a time, an edit that isn't related to the original event or that mentions people, an edit of a message that was
// finished.
//
// Times are those of time.Now, so the fake can be used in a testing/synctest bubble when it is called without sockets, as an
// [http.RoundTripper] ([Server.RoundTrip]). A Server is safe for concurrent use and has no goroutines.
//
// # Tests with the fake
//
// A test makes rooms with people ([Server.Direct], [Server.Group], [Server.Invite]), writes as they do ([Server.Say],
// [Server.Reply]), and looks at the room as they do ([Server.Visible], [Server.IsTyping]). [Server.Write] and [Server.SetState] send
// any event, such as one of an encrypted room.
//
// Requests meet faults one at a time ([Server.Fail]) or at random ([Options.Chaos]); those of a sync have to be named. After a fault
// with After the event exists although the bot got no answer, and a repetition with the same transaction id returns it.
//
// A history is never rewritten: a bot that deletes a message but not its edits leaves its text to be read. So a test of deletions looks at
// [Server.Leftovers] as well.
//
// The fake doesn't replace a real homeserver. It has one account for the bot, neither encryption nor federation, and room versions
// have no effect.
//
// # Rules
//
// Requests
//
//   - The access token has to be in a header. Each login makes a device with a new token.
//   - A body is a JSON object without fractions and without integers that a float64 can't represent, because events are canonical JSON.
//   - A refusal with M_LIMIT_EXCEEDED has the wait in its body in milliseconds, and in the header Retry-After in whole seconds.
//     [Options.Rate] is a token bucket for events and redactions together.
//
// Events
//
//   - An event has at most 65,536 bytes together with what the homeserver adds. The refusal is that of Dendrite or of Synapse.
//   - A second request with the same transaction id, device and path gets the first event id and sends nothing, whatever it contains.
//   - A relation has to name an event of the room, and a thread can't begin at an event that has a relation.
//   - A redaction leaves the edits of a message, and people can still read them ([Server.Leftovers]).
//   - A request for one event returns its first content, without its edits, as Dendrite does.
//
// Rooms
//
//   - Only a member may read or write in a room. The bot becomes one when it accepts an invitation.
//   - "Typing" is shown until its timeout is over or the bot has sent an event.
//
// Sync
//
//   - A sync waits until something has changed or its timeout is over, for at most a minute. A room that the bot has just joined is sent
//     as a whole.
//   - A timeline with more events than the filter allows has only the newest, and a token from which the earlier ones can be read.
//   - Account data is a change as well, unless the filter leaves it out. A bot that stores its position there would otherwise wake itself.
//   - A token of another server is refused.
//
// Media
//
//   - Downloads need the access token, as the specification demands since version 1.11. Uploads are limited to 50 MiB by default, the
//     limit of Synapse.
package matrix
