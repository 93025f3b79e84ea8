// Package attachments stores the files that messages show, and serves them.
//
// A file gets here in one of four ways: a client uploads it, a message carries it in a data URL, a message or an agent names it by a
// path of the workspace, or an agent puts it. Each way ends with a copy of the bytes in the file store of the conversation, a record in
// the journal, and media that name the copy by the path under which it is served. Logs therefore hold no bytes of files.
//
// [Store] is what the gateway needs of this package; it is made first and handed to gateway.Config. [Service] is what surfaces need; it
// is made of the store and the gateway:
//
//	store := attachments.NewStore(attachments.Config{Journal: j, Files: dir})
//	gw, err := gateway.New(gateway.Config{Journal: j, Attachments: store})
//	service := attachments.NewService(store, gw)
//
// Invariants
//
//   - Bytes are durable before their record is, so a record never names a file that was not stored. Bytes without a record are removed
//     by the next start, or by a sweep after a day.
//   - A file belongs to one conversation and is deleted with it. The same bytes in two conversations are two files.
//   - A file that is part of no message expires after a day. The commit of a message that shows it makes it permanent.
//   - A user reads a file of the workspace only if it is the user's own upload. An agent may show files of agents, and uploads of the
//     user on whose behalf it runs.
//   - A stored file counts for the owner of its conversation, once.
package attachments
