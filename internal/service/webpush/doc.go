// Package webpush notifies users about their conversations: that a turn has ended, or that it asks for something. A [Notice] goes to open
// pages at once, and by Web Push (RFC 8030) to the browsers that a user has subscribed, also when the page is closed.
//
// The encryption (RFC 8291) and the authentication (RFC 8292) are here and not in a library: with crypto/ecdh and crypto/hkdf they are
// short, and a library would add dependencies to every module of the project.
//
// Invariants
//
//   - [Service.Committed] never blocks. The queue is bounded, and a notice that doesn't fit is dropped and logged.
//   - A notice contains the title of the conversation, but no text of an answer. It is encrypted for the browser that gets it, so the push
//     service can't read it.
//   - Notices are not stored: after a restart they would be late. Subscriptions are stored in the journal.
//   - A subscription belongs to one user, the last one who sent it. So users who share a browser don't get each other's notices.
//   - Requests go to public https addresses only, because users choose the endpoints.
//   - An endpoint is a secret, and so is the key. Neither is logged.
package webpush
