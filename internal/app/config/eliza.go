package config

// Eliza configures the surface for Eliza's clients.
type Eliza struct {
	// QueryToken allows a token in the URL of the WebSocket /ws, as ?token=. Proxies log URLs, so it is off by default.
	QueryToken bool `yaml:"query_token" env:"LEAT_ELIZA_QUERY_TOKEN ELIZA_ALLOW_WS_QUERY_TOKEN"`
	// Emotes is a folder with avatar animations. If it is empty, the gateway has no animations.
	Emotes string `yaml:"emotes"`
}
