package demo

import "github.com/leat-dev/leat/agent"

var _ agent.Describer = (*Agent)(nil)

// Describe implements [agent.Describer]. Each suggestion shows another ability.
func (*Agent) Describe() (description string, suggestions []string) {
	return "Shows what agents can do here, without a model: everything it says is computed.", []string{
		"What can you do?", "What is 12 * (3 + 4) / 5?", "What day is 2027-01-01?", "How many r's are in strawberry?",
	}
}
