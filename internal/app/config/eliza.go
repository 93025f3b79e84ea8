package config

// Eliza says how far the surface for Eliza's clients goes to meet old ones.
type Eliza struct {
	// QueryToken lets WebSockets at /ws bring their token as ?token=.
	QueryToken bool `yaml:"query_token" env:"LEAT_ELIZA_QUERY_TOKEN ELIZA_ALLOW_WS_QUERY_TOKEN"`
	// Emotes is a folder with the animations of avatars; empty is none.
	Emotes string `yaml:"emotes"`
}
