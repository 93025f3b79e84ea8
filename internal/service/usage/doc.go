// Package usage is the ledger of what turns cost: one row for each turn that ended, and sums of them.
//
// Invariants
//
//   - A row is written in the commit of its turn's end, under a key with the turn's id: so it is there exactly once, whatever
//     dies in between. It belongs to a log of the ledger's own and outlives its conversation.
//   - A row holds numbers and names (agent, model, tenant, subject), nothing that anybody said, and no id of a conversation.
//   - Money is counted in whole billionths of a currency ([Amount]). A turn's cost is computed exactly and rounded once, when
//     the turn ends, and stays what it was when prices change; sums are exact. No float is ever added to another.
//   - Each turn counts by itself: what a turn tells of its usage does not include that of the turns inside it, which have
//     rows of their own, on their parent's subject.
//   - Days are those of UTC. A turn counts on the day on which it ended.
package usage
