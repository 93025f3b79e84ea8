// Package whatsapp is a channel for a number of the WhatsApp Cloud API (developers.facebook.com/docs/whatsapp/cloud-api, version
// 24.0). The platform can't show text that grows and can't edit messages, so each answer is sent when it is complete.
//
// Messages arrive at a webhook. The person sees that a message was read, and a typing indicator until the answer arrives.
//
// Invariants
//
//   - A request to the webhook has no effect unless it is signed with the secret of the app.
//   - The webhook is confirmed when all messages of the request are stored. Otherwise the platform sends the request again.
//   - One message to a person is in flight at a time, and the next one begins 6 seconds later: more are refused.
//   - The API has no idempotency keys. A message with an unknown outcome is not sent again; [channel.ErrUnknownOutcome] reports it.
//   - The access token is sent to the API and to the platform's own media servers only.
package whatsapp
