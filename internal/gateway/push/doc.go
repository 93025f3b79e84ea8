// Package push runs turns whose stream a producer pushes: a program that connects to the gateway and sends the stream, instead of an agent
// to which the gateway connects.
//
// A turn is pushed in one of two ways. A producer begins it with [Service.Push]; its agent is then [gateway.PushAgent]. Or the gateway
// calls an agent, which accepts the request and returns [agent.PushPending]; the agent's process then pushes the stream with the token that
// it got in [agent.Input].
//
// Order of calls
//
//	turns := push.NewTurns(push.Config{Journal: j, Dialects: dialects, URL: url, Metrics: metrics})
//	gw, err := gateway.New(gateway.Config{Journal: j, Pusher: turns, Metrics: metrics})
//	service := push.NewService(turns, gw)
//
//	producer, ack, err := service.Push(ctx, principal, conversation, options)  // or service.Attach after a lost connection
//	err = producer.Write(ctx, bytes)                                           // repeatedly
//	err = producer.Close(true)
//
// [NewTurns] returns the part that the gateway uses, and [Service] is the part for producers. They are separate because the gateway's
// configuration contains the first, and the second needs the gateway.
//
// Invariants
//
//   - The state of the stream is committed together with the operations of the bytes that led to it. A producer that reconnects
//     continues at [Producer.Offset], so that no byte is decoded twice and none is lost, even after a restart of the gateway.
//   - One connection at a time feeds a turn. A new one takes over, and the older one gets an error from its next Write.
//   - A connection that breaks is not the end of the turn. The turn fails when its producer stays away for the time of the lease,
//     unless it waits for a tool or a user.
//   - Each new connection of a turn gets all answers of users again, because the connection before it may have lost them.
package push
