package letta

import "github.com/leat-dev/leat/dialect"

const (
	nameV1   = "letta"
	nameCode = "letta-code"
)

// Dialect describes the stream of the V1 API.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:    nameV1,
		Summary: "Letta V1 API, SSE",
		Framing: dialect.SSE,
		Decoder: func() dialect.Decoder { return New() },
	}
}

// Code describes what Letta Code writes.
func Code() dialect.Dialect {
	return dialect.Dialect{
		Name:    nameCode,
		Summary: "Letta Code: WebSocket frames of its App Server, or lines of its headless mode",
		Framing: dialect.Lines,
		Decoder: func() dialect.Decoder { return NewCode() },
	}
}
