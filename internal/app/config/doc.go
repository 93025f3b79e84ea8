// Package config reads and checks the configuration of a gateway: one YAML file, with an environment variable for each key.
//
//	cfg, err := config.Load(path, os.LookupEnv) // defaults, file, environment
//	...                                         // apply flags with cfg.Keys()
//	err = cfg.Check(kinds, os.Getenv)           // validate and fill in what depends on other keys
//
// Invariants:
//
//   - A flag overrides the environment, the environment overrides the file, and the file overrides the default. A list is replaced as a
//     whole, never merged.
//   - An unknown key is an error at every level, so that a typo never goes unnoticed.
//   - [Config.Check] refuses configurations that are unsafe: without a token, a gateway listens on loopback addresses only.
//   - [Config.YAML] and [Config.JSON] contain no secrets, and neither do errors.
package config
