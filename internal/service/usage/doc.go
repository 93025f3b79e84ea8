// Package usage is the ledger of what turns cost: one row for each ended turn, and sums over rows.
//
// Call [New] and [Ledger.Open] before the first turn ends. The gateway calls [Ledger.Entry] for each turn that ends and adds
// the returned key to the commit of the turn's end. [Ledger.Sum] answers queries.
//
// # Invariants
//
//   - A row is written in the commit that ends its turn, under a key with the turn's id, so a crash neither loses nor duplicates it.
//     The row belongs to the ledger's own log and outlives the conversation.
//   - A row contains numbers and names (agent, model, tenant, subject). It never contains text or the id of a conversation.
//   - Money is counted in whole billionths of a currency ([Amount]). The cost of a turn is computed exactly and rounded once, when the
//     turn ends. Later price changes don't affect it. Sums are exact, because floating-point numbers are never added.
//   - The usage of a turn doesn't include that of the turns inside it. They have their own rows, with the subject of their parent.
//   - Days are UTC. A turn belongs to the day on which it ended.
package usage
