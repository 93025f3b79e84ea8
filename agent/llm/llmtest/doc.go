// Package llmtest has servers that behave as the APIs of model providers do, for tests: they refuse what those refuse, answer a
// script, and fail on demand. They know nothing of package llm.
package llmtest
