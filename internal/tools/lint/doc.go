// Command lint measures how readable the tree is and fails if a figure is above its limit:
//
//	go run ./internal/tools/lint [-list FIGURE]
//
// The figures, over Go code without tests and generated files:
//
//   - names: the share of declared identifiers that are only an adverb, a participle, a pronoun or a quantifier (words.txt).
//   - arrows: the references between the files of a package that point backward, however the files are ordered.
//   - chains: selector expressions of four or more fields in a row, such as w.o.g.cfg.Metrics.
//   - comments: the share of lines that are comments.
//   - exports: the exported identifiers that no other package uses. Methods that implement an interface don't count, and neither do
//     the public packages, which programs that embed Leat import: the root, event, transcript, sse, clients/go, agent and
//     dialect with all kinds and formats below them (agent/acp, dialect/recording) and their suites for tests (agent/agenttest,
//     dialect/dialecttest). Internal folders below them count.
//
// With -list it prints every place that counts for one figure.
package main
