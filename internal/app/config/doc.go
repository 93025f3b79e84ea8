// Package config holds what a gateway can be told: one YAML file, and for every key of it an environment variable.
//
// Invariants
//
//   - A flag wins over the environment, that over the file, that over the default. A list is replaced whole, never merged.
//   - A key that is not known is an error, wherever it stands.
//   - [Config.Check] refuses what could not be served safely: without a token only loopback addresses are listened on.
//   - What is shown ([Config.YAML]) holds no secret.
package config
