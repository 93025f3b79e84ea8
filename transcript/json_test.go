package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/transcript"
)

// everything is a log that sets every key of the JSON of a transcript.
const everything = `
	{"at":1,"type":"conversation.update","title":"T \"<&","metadata":{"b":{"x":[1, 2]},"a":null,"c":"d"}}
	{"at":2,"type":"message.add","message":"u","role":"user","author":{"id":"i","name":"n"},"source":"native","parts":[
	{"kind":"text","text":"hi\u2028\u0000<&"},{"kind":"media","media":{"url":"/f","mime":"image/png","name":"f","size":3,"alt":"a"}},{"kind":"data","data":{"a":1}},{"kind":"status","text":"s","history":["a","b"]}]}
	{"at":3,"type":"turn.queue","turn":"t","agent":"demo","answers":"u","parent":"t0"}
	{"at":4,"type":"message.update","turn":"t","message":"u","state":"rejected","reason":"because"}
	{"at":5,"type":"turn.start","turn":"t"}
	{"at":6,"type":"turn.update","turn":"t","phase":"thinking","step":2,"upstream":{"run":"r","cursor":"c"},"model":"m"}
	{"at":7,"type":"message.start","turn":"t","message":"m","role":"assistant"}
	{"at":8,"type":"part.start","turn":"t","message":"m","part":"p","kind":"tool","name":"bash","call":"c1","mediaType":"text/plain","join":"\n\n","title":"run"}
	{"at":9,"type":"part.append","turn":"t","message":"m","part":"p","field":"input","text":"in"}
	{"at":9,"type":"part.append","turn":"t","message":"m","part":"p","field":"output","text":"out"}
	{"at":9,"type":"part.append","turn":"t","message":"m","part":"p","field":"stderr","text":"err"}
	{"at":10,"type":"part.update","turn":"t","message":"m","part":"p","state":"failed","error":{"code":"E","message":"no","retryable":true}}
	{"at":11,"type":"part.end","turn":"t","message":"m","part":"p"}
	{"at":12,"type":"message.end","turn":"t","message":"m","reason":"stop"}
	{"at":13,"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval","tool":"bash","part":"p","prompt":"ok?","options":["yes","no"],"data":{"z":1}}}
	{"at":13,"type":"turn.wait","turn":"t","request":{"id":"o","kind":"approval","tool":"rm","part":"p","prompt":"sure?","options":["yes"],"data":1}}
	{"at":14,"type":"turn.resume","turn":"t","answer":{"id":"o","decision":"yes","text":"but <slowly>","by":"i"}}
	{"at":14,"type":"turn.start","turn":"t2"}
	{"at":15,"type":"turn.end","turn":"t2","outcome":"failed","reason":"r","by":"i","error":{"message":"no"},"usage":{"model":"m","input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5,"cost":0.5}}`

func TestSnapshotJSON(t *testing.T) {
	tr := fold(t, parse(t, strings.ReplaceAll(everything, "\"parts\":[\n\t", "\"parts\":[")))
	b, err := tr.Snapshot(0).AppendJSON([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `x{"seq":19,"title":"T \"<&","metadata":{"b":{"x":[1,2]},"c":"d"},"messages":[` +
		`{"id":"u","role":"user","author":{"id":"i","name":"n"},"source":"native","at":2,"endAt":2,"state":"rejected","stateTurn":"t","stateReason":"because","ended":true,"parts":[` +
		`{"id":"p1","kind":"text","at":2,"endAt":2,"ended":true,"text":"hi\u2028\u0000<&"},` +
		`{"id":"p2","kind":"media","join":"\n\n","media":{"url":"/f","mime":"image/png","name":"f","size":3,"alt":"a"},"at":2,"endAt":2,"ended":true},` +
		`{"id":"p3","kind":"data","join":"\n\n","data":{"a":1},"at":2,"endAt":2,"ended":true},` +
		`{"id":"p4","kind":"status","join":"\n\n","at":2,"endAt":2,"ended":true,"text":"s","history":["a","b"]}]},` +
		`{"id":"m","turn":"t","role":"assistant","at":7,"endAt":12,"ended":true,"stopReason":"stop","parts":[` +
		`{"id":"p","kind":"tool","name":"bash","call":"c1","mediaType":"text/plain","join":"\n\n","state":"failed","title":"run","error":{"code":"E","message":"no","retryable":true},"at":8,"endAt":11,"ended":true,"input":"in","output":"out","stderr":"err"}]}],` +
		`"turns":[{"id":"t","agent":"demo","answers":"u","parent":"t0","state":"waiting","phase":"thinking","step":2,"model":"m","upstream":{"run":"r","cursor":"c"},` +
		`"requests":[{"id":"q","kind":"approval","tool":"bash","part":"p","prompt":"ok?","options":["yes","no"],"data":{"z":1},"at":13}],` +
		`"answered":[{"id":"o","kind":"approval","tool":"rm","part":"p","prompt":"sure?","decision":"yes","text":"but <slowly>","by":"i","at":14}],"queuedAt":3,"startedAt":5,"firstSeq":3},` +
		`{"id":"t2","state":"ended","outcome":"failed","reason":"r","by":"i","error":{"message":"no"},"usage":{"model":"m","input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5,"cost":0.5},"startedAt":14,"endedAt":15,"firstSeq":18,"endSeq":19}]}`
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	var s transcript.Snapshot
	if err := json.Unmarshal(b[1:], &s); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	// encoding/json escapes the output of MarshalJSON for HTML; the content is the same.
	if d := cmp.Diff(decode(t, b[1:]), decode(t, again)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func decode(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

func TestEmptySnapshotJSON(t *testing.T) {
	b, err := (&transcript.Transcript{}).Snapshot(0).AppendJSON(nil)
	if got := string(b); err != nil || got != `{"messages":[],"turns":[]}` {
		t.Errorf("%s, error %v", got, err)
	}
}

func TestSnapshotJSONOfBrokenData(t *testing.T) {
	tr := fold(t, parse(t, `{"type":"message.add","message":"u","role":"user","parts":[{"kind":"data","data":{"a":1}}]}`))
	tr.Message("u").Parts[0].Data = json.RawMessage("{")
	if b, err := tr.Snapshot(0).AppendJSON(nil); err == nil {
		t.Errorf("no error: %s", b)
	}
}

func FuzzSnapshotJSON(f *testing.F) {
	f.Add([]byte(`{"seq":1,"messages":[{"id":"m","parts":[{"id":"p","kind":"text","text":"a","history":["b"]}]}],"turns":[{"id":"t","requests":[{"id":"r"}],"answered":[{"id":"q","text":"a"}]}]}`))
	f.Add([]byte(`{"messages":[null]}`))
	f.Add([]byte(`{"messages":[{"id":"m","parts":[null]}],"turns":[null],"metadata":{"a":null}}`))
	f.Add([]byte(`{"messages":[{"id":"m","parts":[{"id":"p","text":null,"data":null,"history":[""," a"]}]}],"turns":[{"id":"t","requests":[null]}]}`))
	f.Add([]byte(`{"turns":[{"id":"t","answered":[null]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s transcript.Snapshot
		if json.Unmarshal(b, &s) != nil {
			return
		}
		one, err := s.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var again transcript.Snapshot
		if err := json.Unmarshal(one, &again); err != nil {
			t.Fatalf("%v: %s", err, one)
		}
		two, err := again.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if string(one) != string(two) {
			t.Errorf("%s\n%s", one, two)
		}
		var tr transcript.Transcript
		tr.Reset(&again)
		if _, err := tr.Snapshot(0).AppendJSON(nil); err != nil {
			t.Error(err)
		}
	})
}
