package channel

import "github.com/leat-dev/leat/transcript"

// clientNames are the names of clients, by the source of their messages. Other sources are channels, which the configuration names, or were
// chosen by a program, and are shown as they are.
var clientNames = map[string]string{
	"":            "API",
	"a2a":         "A2A",
	"acp":         "Editor",
	"agui":        "AG-UI",
	"cli":         "Terminal",
	"client_chat": "Dashboard",
	"langgraph":   "LangGraph",
	"letta":       "Letta",
	"mcp":         "MCP",
	"openclaw":    "OpenClaw",
	"responses":   "OpenAI API",
	"vercel":      "AI SDK",
}

// AuthorName returns the name that a chat shows for a user's message from elsewhere: that of its author, or else that of the client or channel.
func AuthorName(m *transcript.Message) string {
	if m.Author != nil && m.Author.Name != "" {
		return m.Author.Name
	}
	if name, ok := clientNames[m.Source]; ok {
		return name
	}
	return m.Source
}
