// Package quota counts what users and tenants use, and refuses what goes beyond their limits.
//
// Invariants
//
//   - What is counted is counted when it is granted, under one lock: of any number of callers that ask at once exactly as
//     many are granted as the limits allow.
//   - A grant takes everything that it needs or nothing: what is refused by the tenant's limit is given back to the user's.
//   - Everything that was granted is given back once, whatever is called twice.
//   - The operator (no subject) is bound by nothing, and what it has counts towards no tenant.
//   - Bytes are the store's to count; here lie only those that were granted and are not in the store yet.
package quota
