// The conformance suite of Durable Streams against the gateway at LEAT_URL, unchanged. ../durable_test.go runs it with vitest.
import { runConformanceTests } from '@durable-streams/server-conformance-tests';

runConformanceTests({ baseUrl: process.env.LEAT_URL, longPollTimeoutMs: 20_000, subscriptions: true });
