// Package quota counts what users and tenants use and refuses what would exceed their limits.
//
// The gateway calls [Quota.Take] before it writes a message or starts a turn, and then either [Reservation.Commit] or
// [Reservation.Cancel]. [Quota.End] releases a turn's slot when it ends, and [Quota.Sync] corrects the count from the log.
// Counts are in memory only: after a restart the gateway calls Sync for each conversation with unfinished turns.
//
// # Invariants
//
//   - Usage is counted at the time of the reservation, under one lock. However many callers ask concurrently, the limits are never
//     exceeded.
//   - A reservation is granted as a whole or not at all. If the tenant's limit refuses it, the user's counters are unchanged.
//   - Each reservation is released once, even if a method is called twice.
//   - The operator (an account without a subject) has no limits, and its usage doesn't count toward a tenant.
//   - The store counts stored bytes. This package only adds the bytes that are reserved but not stored yet.
package quota
