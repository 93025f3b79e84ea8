package llm

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// provider describes an API as a kind of agent.
type provider struct {
	kind, summary string
	api           *api
	// model is the model of the agent that exists without a configuration if the key is in the environment. If it is empty, such an
	// agent doesn't exist.
	model    string
	thinking string // help text of the option thinking
	// schemes are the URL schemes of addresses that may be this API, for discovery at an address of unknown kind.
	schemes []string
}

// providers are the kinds of agents of this package, each a model behind one of the APIs.
var providers = []provider{
	{"anthropic", "a model of Anthropic, or of a server with a compatible Messages API", &anthropicAPI, "claude-sonnet-5", "number of tokens for thinking, adaptive or off", nil},
	{"openai", "a model behind OpenAI's Chat Completions API, which many servers offer (see base_url)", &openAIAPI, "gpt-5.4-mini", "effort: " + strings.Join(efforts, ", "), []string{"http", "https"}},
	{"responses", "a model behind OpenAI's Responses API; in the background it survives restarts", &responsesAPI, "", "effort: " + strings.Join(efforts, ", "), nil},
	{"gemini", "a model of Google's Gemini", &geminiAPI, "gemini-flash-latest", "number of tokens for thinking, adaptive or off", nil},
	{"ollama", "a model that Ollama runs", &ollamaAPI, "", "on, off, low, medium or high", []string{"http", "https"}},
}

// Kinds returns a kind of agent for each provider. Their streams are decoded by the given dialects, which must
// contain those of all providers; the dialects are looked up when an agent is made.
func Kinds(dialects dialect.Registry) []agent.Kind {
	kinds := make([]agent.Kind, len(providers))
	for i, p := range providers {
		kinds[i] = p.agentKind(dialects)
	}
	return kinds
}

// FromEnvironment returns the agents that exist without a configuration: one for each provider that has a default model and
// whose key is in the environment.
func FromEnvironment(getenv func(string) string) []agent.Spec {
	var specs []agent.Spec
	for _, p := range providers {
		if p.model != "" && strings.TrimSpace(getenv(p.api.env)) != "" {
			specs = append(specs, agent.Spec{Name: p.kind, Kind: p.kind, Target: p.model})
		}
	}
	return specs
}

// agentKind returns the kind with its options. The option background exists only for the Responses API.
func (p provider) agentKind(dialects dialect.Registry) agent.Kind {
	options := append([]agent.Option{
		{Name: "base_url", Help: "address of the API", Default: p.api.base},
		{Name: "system", Help: "system prompt"},
		{Name: "system_file", Help: "file with the system prompt"},
		{Name: "max_tokens", Help: "limit of an answer, in tokens", Default: "the provider's; " + strconv.Itoa(anthropicTokens) + " for Anthropic"},
		{Name: "temperature", Help: "0 to 2", Default: "the model's"},
		{Name: "thinking", Help: p.thinking, Default: "the model's"},
		{Name: "history_bytes", Help: "limit of the history's texts, in bytes", Default: "limits.history_bytes"},
	}, agent.SecretOptions("token", "the provider's API key", p.api.env+" at "+p.api.base+", none elsewhere")...)
	if p.api == &responsesAPI {
		options = append(options, agent.Option{Name: "background", Help: "true: responses continue without a connection and are stored at the provider; false: they end with the connection", Default: "true at " + openAIBase + ", false elsewhere"})
	}
	return agent.Kind{
		Name: p.kind, Summary: p.summary, Target: "MODEL", Options: options, Renamed: map[string]string{"api_key_env": "token_env"},
		New:      func(s agent.Spec) (agent.Agent, error) { return p.newAgent(s, dialects) },
		Missing:  p.missing,
		Discover: p.discover, Schemes: p.schemes,
	}
}

// newAgent creates an agent from a spec. Its decoder is the one of dialects, which may count frames for the
// metrics. Every option is checked here, so that a mistake is reported when the gateway starts and not in the
// first turn.
func (p provider) newAgent(s agent.Spec, dialects dialect.Registry) (agent.Agent, error) {
	o := s.Options
	c := config{Model: s.Target, BaseURL: o["base_url"], Thinking: o["thinking"]}
	var err error
	if c.Key, c.KeyFrom, err = keyOf(s); err != nil {
		return nil, err
	}
	if c.System, err = prompt(o["system"], o["system_file"]); err != nil {
		return nil, err
	}
	if c.MaxTokens, err = count(o, "max_tokens"); err != nil {
		return nil, err
	}
	if c.HistoryBytes, err = count(o, "history_bytes"); err != nil {
		return nil, err
	}
	if v, ok := o["temperature"]; ok {
		t, err := strconv.ParseFloat(v, 64)
		if err != nil || !(t >= 0 && t <= 2) {
			return nil, fmt.Errorf("invalid temperature %q: use a number from 0 to 2", v)
		}
		c.Temperature = &t
	}
	// Background responses are on by default only at the provider's own address: compatible servers rarely support them.
	if c.Background, err = s.Bool("background", p.api == &responsesAPI && o["base_url"] == ""); err != nil {
		return nil, err
	}
	// The api is copied, so that agents of several registries don't share a decoder.
	api := *p.api
	d, err := dialects.Lookup(api.dialect().Name)
	if err != nil {
		return nil, err
	}
	api.dialect = func() dialect.Dialect { return d }
	a, err := newAgent(api, c)
	if err != nil {
		return nil, err
	}
	if c.Background {
		return backgroundAgent{a}, nil
	}
	return a, nil
}

// missing returns the error of a turn without a key. A spec with other errors misses nothing.
func (p provider) missing(s agent.Spec) error {
	key, from, err := keyOf(s)
	if err != nil {
		return nil
	}
	a, err := newAgent(*p.api, config{Model: s.Target, BaseURL: s.Options["base_url"], Key: key, KeyFrom: from})
	if err != nil {
		return nil
	}
	return a.checkKey()
}

// keyOf returns the key from the options, and the name of the option's source for error texts.
func keyOf(s agent.Spec) (key, from string, err error) {
	key, err = s.Secret("token")
	return key, cmp.Or(s.Options["token_env"], s.Options["token_file"], "the option token"), err
}

// count returns the value of an option that is a positive number, or 0 if it isn't set.
func count(o map[string]string, key string) (int, error) {
	v, ok := o[key]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("invalid %s %q: use a number of at least 1", key, v)
	}
	return n, nil
}

// prompt returns the system prompt from the option system or from the file. The file is read once, when the
// agent is made, so a change needs a reload of the configuration.
func prompt(text, file string) (string, error) {
	switch {
	case file == "":
		return text, nil
	case text != "":
		return "", fmt.Errorf("set system or system_file, not both")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("system_file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
