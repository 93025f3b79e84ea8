// Package llm has the agents that are models behind the APIs of providers: Anthropic Messages, OpenAI Chat Completions and
// what else speaks it, OpenAI Responses, Gemini, and Ollama's own. docs/providers.md describes them for those who use them.
//
// Invariants
//
//   - A turn is one call. A call that failed before anything was seen is repeated, for 60 s at most; after that it is not. That
//     holds too for a failure that the provider tells inside a stream that began well.
//   - A response of the Responses API that runs in the background goes on without this process: it is followed by its id and the
//     number of its last event, which lie in the journal with what they led to, over broken connections and restarts.
//   - What is sent is what was said: turns by turns, a user first, texts without reasoning. No API here wants the reasoning of
//     turns that are over, nor its signatures.
//   - An API key is sent in headers only, and never appears in a body, an error or a log. Without the options for a key, the provider's
//     environment variable is read for each call, but only for calls to the provider's own address.
package llm
