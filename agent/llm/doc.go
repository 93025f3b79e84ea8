// Package llm has the kinds of agents that call a model at a provider's API: Anthropic Messages, OpenAI Chat Completions and compatible
// servers, OpenAI Responses, Gemini and Ollama. docs/providers.md describes them for users.
//
// A turn converts the conversation to alternating messages within the budgets (turns), builds the provider's request (api.body), and
// calls the provider (attempt.call) until the response is complete. If the response calls tools of the client, or asks for approvals
// (Responses API only), the turn waits for the answers and calls again (attempt.answer).
//
// Invariants
//
//   - A call that fails before readers have seen any of the answer is repeated, for 60 s at most; this includes an error inside a
//     stream that began normally. A call that fails later is never repeated, because readers would see a second answer.
//   - A background response (Responses API) continues without this process. The turn's state has the response's id and the number of its
//     last event, and is committed together with the events that it produced. After a disconnect or a restart the turn resumes there.
//   - A call of a client's tool is a request of the turn, and not a tool part, so that a client sees it once. All requests of a response
//     are open at the same time, with ids that stay the same after a restart. A call of another function, or with invalid arguments, gets
//     an error as its result without a request.
//   - The next request repeats a response with calls as its API requires (reply): texts, calls, and the signatures of the reasoning. It
//     is repeated like the first request, since results have no effect but another response.
//   - The first request of a turn has only texts and attachments, and starts and ends with a message of the user. The reasoning and the
//     calls of earlier turns are left out, since no API here requires them.
//   - An API key is sent only in headers, and never appears in a body, an error or a log. Without the options for a key, the provider's
//     environment variable is read for each call, but only for calls to the provider's own address.
package llm
